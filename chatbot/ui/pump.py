"""Reads an iterator in a thread of its own, so that its reader need not wait for each item.

Without it, text that came just after an update would stay hidden while the model pauses, and a
closed tab would go unnoticed until the next word. Knows no reply and no page.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Generic, TypeVar

T = TypeVar("T")


class Pump(Generic[T]):
    """Owns the thread. `close` asks the source to end by `stop` and waits until it has ended."""

    def __init__(self, source: Iterator[T], stop: Callable[[], None]) -> None:
        self._source = source
        self._stop = stop
        self._items: queue.SimpleQueue[T | _End] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="reply", daemon=True)
        self._thread.start()

    def next(self, timeout_s: float) -> T | None:
        """The next item, or None when none came in time.

        Raises StopIteration at the end, and whatever the source raised.
        """
        try:
            item = self._items.get(timeout=timeout_s)
        except queue.Empty:
            return None
        if not isinstance(item, _End):
            return item
        self._items.put(item)
        if item.error is not None:
            raise item.error
        raise StopIteration

    def close(self) -> None:
        """End the source if it has not ended. Idempotent."""
        if self._thread.is_alive():
            self._stop()
        self._thread.join()

    def _run(self) -> None:
        error: Exception | None = None
        try:
            with closing(self._source):  # type: ignore[type-var]
                for item in self._source:
                    self._items.put(item)
        except Exception as raised:  # handed to the reader, who is the one to tell a person
            error = raised
        self._items.put(_End(error))


class _End:
    def __init__(self, error: Exception | None) -> None:
        self.error = error
