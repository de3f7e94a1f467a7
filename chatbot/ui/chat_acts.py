"""What the buttons of the list of chats do, and what changes what a tab shows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from chatbot.errors import ChatbotError
from chatbot.services import Services
from chatbot.ui.calls import Call, files_of, text_of
from chatbot.ui.chat_files import read_chats
from chatbot.ui.desk import Desk, Tab
from chatbot.ui.i18n import pick_language, tr
from chatbot.ui.inbox import Inbox
from chatbot.ui.replies import warn
from chatbot.ui.screen import Screen, Updates
from chatbot.ui.sentences import in_language

MAX_TITLE_CHARACTERS = 200
MOST_LEFT_OUT_TOLD = 5
"""Of the chats of a file that cannot be read, so many are named, the others counted."""
MAX_SEARCH_CHARACTERS = 200


class ChatActs:
    """Acts on chats as a whole. Raise ChatbotError with a sentence for the person."""

    def __init__(self, services: Services, desk: Desk, screen: Screen, inbox: Inbox) -> None:
        self._services = services
        self._desk = desk
        self._screen = screen
        self._inbox = inbox

    def table(self) -> dict[str, Callable[[Call, Tab], Updates]]:
        """The acts by the names that the page's script gives."""
        return {
            "open": self._open,
            "new": self._new,
            "rename": self._rename,
            "delete": self._delete,
            "earlier": self._earlier,
            "language": self._language,
            "search": self._search,
            "pin": self._pin,
            "import": self._import,
        }

    def _open(self, call: Call, tab: Tab) -> Updates:
        wanted = call.id()
        if self._screen.conversation(wanted) is None:
            warn(tr(tab.language, "warn.no_chat"))
            return self._screen.side(tab)
        shown = self._desk.show(call.session, Tab(wanted, tab.language, search=tab.search))
        self._services.chat.read_ahead(wanted)
        return self._screen.whole(shown, call.session)

    def _new(self, call: Call, tab: Tab) -> Updates:
        shown = self._desk.show(call.session, Tab("", tab.language, search=tab.search))
        return self._screen.whole(shown, call.session)

    def _rename(self, call: Call, tab: Tab) -> Updates:
        title = " ".join(str(call.data.get("title", "")).split())[:MAX_TITLE_CHARACTERS]
        if title and self._screen.conversation(call.id()):
            self._services.store.rename(call.id(), title)
        return self._screen.side(tab)

    def _delete(self, call: Call, tab: Tab) -> Updates:
        target = call.id()
        if self._screen.conversation(target) is not None:
            self._desk.stop(target)
            self._services.chat.delete(target)
        if tab.conversation_id == target:
            return self._new(call, tab)
        return self._screen.side(tab)

    def _search(self, call: Call, tab: Tab) -> Updates:
        wanted = text_of(call)[:MAX_SEARCH_CHARACTERS]
        shown = self._desk.show(call.session, replace(tab, search=wanted))
        return {"conversations": self._screen.conversations(shown)}

    def _pin(self, call: Call, tab: Tab) -> Updates:
        if self._screen.conversation(call.id()):
            self._services.store.pin_conversation(call.id(), call.data.get("on") is True)
        return {"conversations": self._screen.conversations(tab)}

    def _import(self, call: Call, tab: Tab) -> Updates:
        """Chats from files; the first of them is opened, what cannot be read is told."""
        first = ""
        for file in files_of(call, self._inbox):
            try:
                read = read_chats(file)
                for conversation in read.chats:
                    stored = self._services.store.import_conversation(conversation)
                    first = first or stored.id
                for reason in (*read.changed, *read.left_out[:MOST_LEFT_OUT_TOLD]):
                    warn(f"{file.name}: {in_language(tab.language, reason)}")
                if rest := read.left_out[MOST_LEFT_OUT_TOLD:]:
                    warn(f"{file.name}: + {len(rest)}")
            except ChatbotError as error:
                warn(f"{file.name}: {in_language(tab.language, str(error))}")
            finally:
                file.path.unlink(missing_ok=True)
        if not first:
            return self._screen.side(tab)
        shown = self._desk.show(call.session, Tab(first, tab.language))
        return self._screen.whole(shown, call.session)

    def _earlier(self, call: Call, tab: Tab) -> Updates:
        more = self._desk.more(call.session)
        conversation = self._screen.conversation(more.conversation_id)
        return self._screen.chat(more, call.session, conversation)

    def _language(self, call: Call, tab: Tab) -> Updates:
        chosen = pick_language(chosen=str(call.data.get("value", "")), setting="", accept="")
        shown = self._desk.show(call.session, replace(tab, language=chosen))
        return self._screen.whole(shown, call.session)
