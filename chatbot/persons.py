"""The services of each person who has come since the start; opened once, closed together.

Those of people who are away rest: what their files, turns and indexes take in memory is bounded by
how many people are there, not by how many have ever come.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from chatbot.services import Services

REST_AFTER_S = 600.0
LOOK_EVERY_S = 60.0


class Persons:
    """Shared by the page and the API, so that a person's conversations have one `Chat` only."""

    def __init__(self, services: Services, *, now_s: Callable[[], float] = time.monotonic) -> None:
        """`services` are those of "", where nobody says who they are; they stay the caller's."""
        self._services = services
        self._now_s = now_s
        self._lock = threading.Lock()
        self._opened: dict[str, Services] = {"": services}
        self._opening: dict[str, threading.Lock] = {}
        self._used_s: dict[str, float] = {}
        """When those who are awake were last asked for."""
        self._looked_s = now_s()
        self._resting: threading.Thread | None = None

    @property
    def shared(self) -> Services:
        """What all have in common: the engine, the settings, and the store of the program."""
        return self._services

    def of(self, name: str) -> Services:
        """The services of a person; `name` must be safe as the name of a folder."""
        self._used_s[name] = self._now_s()
        self._look()
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
            resting = self._resting
        if resting is not None:
            resting.join()
        for name, services in opened.items():
            if name:
                services.close()

    def _look(self) -> None:
        """Now and then, let those rest who have not been asked for in a while."""
        now_s = self._now_s()
        if now_s - self._looked_s < LOOK_EVERY_S:
            return
        with self._lock:
            if now_s - self._looked_s < LOOK_EVERY_S:
                return
            self._looked_s = now_s
            used = list(self._used_s.items())
            away = [name for name, used_s in used if name and now_s - used_s >= REST_AFTER_S]
            for name in away:
                del self._used_s[name]
            services = [self._opened[name] for name in away if name in self._opened]
            if services:
                # Closing files writes to the disk, for which nobody need wait.
                self._resting = threading.Thread(target=_rest, args=(services,), name="rest")
                self._resting.start()


def _rest(all_services: list[Services]) -> None:
    for services in all_services:
        services.rest()
