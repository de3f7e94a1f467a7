"""Whose page is asked: each person has a program of their own on the shared model.

So nobody's chats, documents, uploads or replies can be reached from another's page, whatever a
browser sends: they lie in another store.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from chatbot.errors import InputError
from chatbot.persons import Persons
from chatbot.services import Services
from chatbot.ui.desk import MAX_TABS
from chatbot.ui.handlers import Handlers
from chatbot.ui.inbox import Inbox


class People:
    """Owns the handlers of everybody who has come since the start."""

    def __init__(
        self, persons: Persons, inbox: Inbox, whose: Callable[[str], str | None] | None
    ) -> None:
        """`whose` tells the person of a Cookie header; None where nobody logs in."""
        self._persons = persons
        self._inbox = inbox
        self._whose = whose
        self._lock = threading.Lock()
        self._handlers: dict[str, Handlers] = {}
        self._tabs: dict[str, str] = {}
        if whose is None:
            self._handlers[""] = Handlers(persons.of(""), inbox)

    def of(self, cookies: str, session: str = "") -> Handlers:
        """The handlers of the person with this Cookie header, whose tab `session` is from now on.

        Raises InputError for nobody, and for a tab that is another person's.
        """
        name = self.name_of(cookies)
        if name is None:
            raise InputError("You are not logged in any more; reload the page.")
        with self._lock:
            self._claim(name, session)
            if name not in self._handlers:
                self._handlers[name] = Handlers(self._persons.of(name), self._inbox, name)
            return self._handlers[name]

    def name_of(self, cookies: str) -> str | None:
        """The person with this Cookie header; "" where nobody logs in, None for nobody."""
        return "" if self._whose is None else self._whose(cookies)

    def services_of(self, name: str, session: str) -> Services:
        """What belongs to a person who is known by a key. Raises InputError as `of` does."""
        with self._lock:
            self._claim(name, session)
        return self._persons.of(name)

    def may_listen(self, name: str | None, session: str) -> bool:
        """Whether what is sent to a tab may go to this person."""
        with self._lock:
            return self._tabs.get(session) in (None, name)

    def _claim(self, name: str, session: str) -> None:
        if not session:
            return
        if self._tabs.setdefault(session, name) != name:
            raise InputError("This tab belongs to someone else; reload the page.")
        # The one that was used longest ago makes room: most go without a word.
        self._tabs[session] = self._tabs.pop(session)
        if len(self._tabs) > MAX_TABS:
            del self._tabs[next(iter(self._tabs))]

    def leave(self, session: str) -> None:
        """A tab was closed while something ran in it; it may no longer say whose it was."""
        with self._lock:
            self._tabs.pop(session, None)
            everybody = list(self._handlers.values())
        for handlers in everybody:
            handlers.desk.leave(session)

    def close(self) -> None:
        """Stop all replies and uploads of the page."""
        with self._lock:
            everybody = list(self._handlers.values())
        for handlers in everybody:
            handlers.close()
