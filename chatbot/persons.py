"""The services of each person who has come since the start; opened once, closed together."""

from __future__ import annotations

import threading

from chatbot.services import Services


class Persons:
    """Shared by the page and the API, so that a person's conversations have one `Chat` only."""

    def __init__(self, services: Services) -> None:
        """`services` are those of "", where nobody says who they are; they stay the caller's."""
        self._services = services
        self._lock = threading.Lock()
        self._opened: dict[str, Services] = {"": services}
        self._opening: dict[str, threading.Lock] = {}

    @property
    def shared(self) -> Services:
        """What all have in common: the engine, the settings, and the store of the program."""
        return self._services

    def of(self, name: str) -> Services:
        """The services of a person; `name` must be safe as the name of a folder."""
        found = self._opened.get(name)
        if found is not None:
            return found
        with self._lock:
            opening = self._opening.setdefault(name, threading.Lock())
        # Making a store writes to the disk several times; others need not wait for it.
        with opening:
            if name not in self._opened:
                self._opened[name] = self._services.for_person(name)
            return self._opened[name]

    def close(self) -> None:
        """Close what was opened here. Idempotent."""
        with self._lock:
            opened, self._opened = self._opened, {"": self._services}
        for name, services in opened.items():
            if name:
                services.close()
