"""What the hands of a person do to the memory and the turns of the chat on the screen.

Each act is checked, done by `Chat`, and answered with what the page shows then.
"""

from __future__ import annotations

from collections.abc import Callable

from chatbot.services import Services
from chatbot.ui.calls import Call, text_of
from chatbot.ui.desk import Desk, Tab
from chatbot.ui.screen import Screen, Updates

Act = Callable[[Call, Tab], Updates]


class MemoryActs:
    """Edits of summary, facts and turns. Raise InputError with a sentence for the person."""

    def __init__(self, services: Services, desk: Desk, screen: Screen) -> None:
        self._services = services
        self._desk = desk
        self._screen = screen

    def table(self) -> dict[str, Act]:
        """The acts by the names that the page's script gives."""
        return {
            "summary-edit": self._edit_summary,
            "fact-add": self._add_fact,
            "fact-edit": self._edit_fact,
            "fact-pin": self._pin_fact,
            "fact-delete": self._delete_fact,
            "forget": self._forget,
            "version": self._version,
            "goto": self._goto,
        }

    def _edit_summary(self, call: Call, tab: Tab) -> Updates:
        self._services.chat.edit_summary(tab.conversation_id, text_of(call))
        return self._drawn(call, tab)

    def _add_fact(self, call: Call, tab: Tab) -> Updates:
        if not tab.conversation_id:
            return {}
        self._services.chat.add_fact(tab.conversation_id, text_of(call))
        return self._drawn(call, tab)

    def _edit_fact(self, call: Call, tab: Tab) -> Updates:
        self._services.chat.edit_fact(tab.conversation_id, call.id(), text_of(call))
        return self._drawn(call, tab)

    def _pin_fact(self, call: Call, tab: Tab) -> Updates:
        pinned = call.data.get("on") is True
        self._services.chat.pin_fact(tab.conversation_id, call.id(), pinned)
        return self._drawn(call, tab)

    def _delete_fact(self, call: Call, tab: Tab) -> Updates:
        self._services.chat.delete_fact(tab.conversation_id, call.id())
        return self._drawn(call, tab)

    def _forget(self, call: Call, tab: Tab) -> Updates:
        self._services.chat.forget_turn(tab.conversation_id, call.id())
        return self._screen.whole(tab, call.session)

    def _version(self, call: Call, tab: Tab) -> Updates:
        self._services.chat.switch_version(tab.conversation_id, call.id())
        return self._screen.whole(tab, call.session)

    def _goto(self, call: Call, tab: Tab) -> Updates:
        """Show enough of the older turns for the page's script to scroll to one of them."""
        conversation = self._screen.conversation(tab.conversation_id)
        ids = [turn.id for turn in conversation.turns] if conversation else []
        if call.id() not in ids:
            return {}
        needed = len(ids) - ids.index(call.id())
        if needed > tab.shown:
            tab = self._desk.more(call.session, needed + 2)
        return self._screen.chat(tab, call.session, conversation)

    def _drawn(self, call: Call, tab: Tab) -> Updates:
        return self._screen.chat(tab, call.session, self._screen.conversation(tab.conversation_id))
