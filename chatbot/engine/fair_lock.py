"""A lock that is given in the order of asking, and whose waiting can be stopped."""

from __future__ import annotations

from collections import deque
from threading import Condition, Event

_POLL_S = 0.05


class FairLock:
    """First come, first served; `threading.Lock` promises no order."""

    def __init__(self) -> None:
        self._changed = Condition()
        self._queue: deque[object] = deque()

    def acquire(self, stop: Event | None = None) -> bool:
        """Wait for the turn; False when `stop` was set first."""
        ticket = object()
        with self._changed:
            self._queue.append(ticket)
            try:
                while self._queue[0] is not ticket:
                    if stop is not None and stop.is_set():
                        self._leave(ticket)
                        return False
                    self._changed.wait(_POLL_S)
            except BaseException:  # an interrupt must not leave a ticket that blocks all others
                self._leave(ticket)
                raise
        return True

    def release(self) -> None:
        """Hand over to the next. Only the holder may call this."""
        with self._changed:
            self._queue.popleft()
            self._changed.notify_all()

    def _leave(self, ticket: object) -> None:
        self._queue.remove(ticket)
        self._changed.notify_all()
