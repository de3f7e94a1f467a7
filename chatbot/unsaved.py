"""Replies that could not be stored when they ended, and are stored as soon as they can be."""

from __future__ import annotations

import logging
import threading
from typing import Protocol

from chatbot.errors import StoreError, TurnGoneError
from chatbot.messages import Turn

log = logging.getLogger(__name__)

AGAIN_S = 2.0
"""How long after a failure it is tried again."""


class TurnKeeper(Protocol):
    """Where replies go when they end: `chatbot.store.Store`, or nowhere."""

    def finish_turn(self, conversation_id: str, turn: Turn) -> None: ...


class Unsaved:
    """The replies of one store that wait. Safe to use from many threads.

    A thread of its own tries again and again, but only while there are any: whoever asked may not
    come back, and a program that is killed meanwhile would lose them.
    """

    def __init__(self, store: TurnKeeper) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._saving = threading.Lock()
        self._waiting: list[tuple[str, Turn]] = []
        self._closed = threading.Event()
        self._worker: threading.Thread | None = None

    def keep(self, conversation_id: str, turn: Turn) -> None:
        """Keep a reply until it is stored."""
        with self._lock:
            self._waiting.append((conversation_id, turn))
            if self._worker is None and not self._closed.is_set():
                self._worker = threading.Thread(target=self._work, name="unsaved", daemon=True)
                self._worker.start()

    def save(self) -> None:
        """Store all that can be stored, in their order; what another thread is storing is stored
        once this returns."""
        with self._saving:
            while (item := self._first()) is not None:
                try:
                    self._store.finish_turn(*item)
                except TurnGoneError as error:
                    log.warning("A reply that was deleted meanwhile is dropped: %s", error)
                except StoreError:
                    return
                self._drop(item)

    def forget(self, conversation_id: str) -> None:
        """Drop the replies of a conversation: it was deleted."""
        with self._lock:
            self._waiting = [item for item in self._waiting if item[0] != conversation_id]

    def close(self) -> None:
        """Try once more and end the thread. Idempotent."""
        with self._lock:
            self._closed.set()
            worker = self._worker
        if worker is not None:
            worker.join()
        self.save()

    def _work(self) -> None:
        while not self._closed.wait(AGAIN_S):
            self.save()
            with self._lock:
                if not self._waiting:
                    self._worker = None
                    return

    def _first(self) -> tuple[str, Turn] | None:
        with self._lock:
            return self._waiting[0] if self._waiting else None

    def _drop(self, item: tuple[str, Turn]) -> None:
        with self._lock:
            self._waiting = [other for other in self._waiting if other is not item]
