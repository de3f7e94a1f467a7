"""Who shows and who runs what: open tabs, replies in the making, stop flags. Knows no widget.

Everything is keyed by the tab's session or by the conversation, so nothing of one person is
ever seen by another.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from chatbot.ui.i18n import Language
from chatbot.ui.view import SHOWN_TURNS, LiveReply

MAX_TABS = 10_000
"""Tabs that are known at once. One that is closed while nothing runs in it goes without a word, so
the one that was changed longest ago makes room; to a tab that is open all the same it is as after a
restart of the program."""


@dataclass(frozen=True, slots=True)
class Tab:
    """What one browser tab shows; `conversation_id` "" is a chat that has not begun."""

    conversation_id: str = ""
    language: Language = "en"
    shown: int = SHOWN_TURNS
    search: str = ""
    """What the list of chats is searched for."""
    phase: str = ""
    """How far an exchange of the model was when the settings were drawn."""


@dataclass(slots=True)
class Ticket:
    """One reply in the making. `stop` ends it; `live` is what it looks like by now."""

    conversation_id: str
    session: str
    live: LiveReply
    stop: threading.Event = field(default_factory=threading.Event)


class Desk:
    """Owns the tables of tabs and running replies. All methods may be called from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._beginning = threading.Lock()
        self._tabs: dict[str, Tab] = {}
        self._tickets: dict[str, Ticket] = {}
        self._is_closed = False

    def tab(self, session: str) -> Tab:
        """What the tab shows; a fresh one for a session that is not known (after a restart)."""
        with self._lock:
            return self._tabs.get(session, Tab())

    def knows(self, session: str) -> bool:
        """Whether the tab has been seen since the server started."""
        with self._lock:
            return session in self._tabs

    def is_left(self, session: str) -> bool:
        """Whether nobody can be told anything at this tab any more."""
        with self._lock:
            return self._is_closed or session not in self._tabs

    def show(self, session: str, tab: Tab) -> Tab:
        """Note what the tab shows from now on."""
        with self._lock:
            return self._note(session, tab)

    def _note(self, session: str, tab: Tab) -> Tab:
        self._tabs.pop(session, None)
        self._tabs[session] = tab
        if len(self._tabs) > MAX_TABS:
            del self._tabs[next(iter(self._tabs))]
        return tab

    def begin(self, session: str, tab: Tab, make: Callable[[], str]) -> Tab:
        """The tab with a chat; where it has none yet, that of the id which `make` returns.

        A file and a question that a new chat gets at once come to the same one.
        """
        if tab.conversation_id:
            return tab
        with self._beginning:
            now = self.tab(session)
            if now.conversation_id:
                return now
            return self.show(session, replace(tab, conversation_id=make()))

    def unbegin(self, session: str, conversation_id: str, drop: Callable[[], bool]) -> bool:
        """Take `begin` back where `drop` could remove the chat; whether the tab showed it still."""
        with self._beginning:
            if not drop():
                return False
            tab = self.tab(session)
            if tab.conversation_id == conversation_id:
                self.show(session, replace(tab, conversation_id=""))
            return tab.conversation_id == conversation_id

    def more(self, session: str, least: int = 0) -> Tab:
        """Let the tab show more of the older turns, `least` of them at least."""
        with self._lock:
            tab = self._tabs.get(session, Tab())
            more = max(tab.shown + SHOWN_TURNS, least)
            return self._note(session, replace(tab, shown=more))

    def claim(self, conversation_id: str, session: str, live: LiveReply) -> Ticket | None:
        """Take the conversation for one reply, or None while another reply runs in it."""
        with self._lock:
            if conversation_id in self._tickets:
                return None
            ticket = Ticket(conversation_id, session, live)
            self._tickets[conversation_id] = ticket
            return ticket

    def release(self, ticket: Ticket) -> None:
        """Give the conversation back. Safe to call twice."""
        with self._lock:
            if self._tickets.get(ticket.conversation_id) is ticket:
                del self._tickets[ticket.conversation_id]

    def running(self, conversation_id: str) -> Ticket | None:
        """The reply in the making in this conversation, if any."""
        with self._lock:
            return self._tickets.get(conversation_id)

    def stop(self, conversation_id: str) -> bool:
        """Ask the reply of this conversation to end; False if there is none."""
        ticket = self.running(conversation_id)
        if ticket is None:
            return False
        ticket.stop.set()
        return True

    def leave(self, session: str) -> None:
        """The tab was closed: forget it, and stop the replies that it asked for."""
        with self._lock:
            self._tabs.pop(session, None)
            mine = [t for t in self._tickets.values() if t.session == session]
        for ticket in mine:
            ticket.stop.set()

    def stop_all(self) -> None:
        """The server ends: stop every reply."""
        with self._lock:
            self._is_closed = True
            tickets = list(self._tickets.values())
        for ticket in tickets:
            ticket.stop.set()
