"""A lock that is given in the order of asking, to one or to some at once; waiting can be stopped.

Knows nothing of what is locked.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Condition, Event

_POLL_S = 0.05


@dataclass(frozen=True, slots=True, eq=False)
class Ticket:
    """A place in the line, or inside."""

    alone: bool


class FairLock:
    """First come, first served, `places` at once; `threading.Lock` promises no order."""

    def __init__(self, places: int = 1) -> None:
        self._places = places
        self._changed = Condition()
        self._queue: list[Ticket] = []

    def acquire(
        self, stop: Event | None = None, *, alone: bool = False, timeout_s: float = math.inf
    ) -> Ticket | None:
        """Wait for the turn; None when `stop` was set or the time was up first.

        `alone` waits for all others.
        """
        ticket = Ticket(alone)
        until_s = time.monotonic() + timeout_s
        with self._changed:
            self._queue.append(ticket)
            try:
                while not self._may_enter(ticket):
                    given_up = stop is not None and stop.is_set()
                    if given_up or time.monotonic() >= until_s:
                        self._leave(ticket)
                        return None
                    self._changed.wait(_POLL_S)
            except BaseException:  # an interrupt must not leave a ticket that blocks all others
                self._leave(ticket)
                raise
        return ticket

    def release(self, ticket: Ticket) -> None:
        """Hand over to the next."""
        with self._changed:
            self._leave(ticket)

    @contextmanager
    def held(self, *, alone: bool = False) -> Iterator[None]:
        """The lock for a block."""
        ticket = self.acquire(alone=alone)
        assert ticket is not None
        try:
            yield
        finally:
            self.release(ticket)

    def _may_enter(self, ticket: Ticket) -> bool:
        place = self._queue.index(ticket)
        if ticket.alone:
            return place == 0
        return place < self._places and not any(other.alone for other in self._queue[:place])

    def _leave(self, ticket: Ticket) -> None:
        self._queue.remove(ticket)
        self._changed.notify_all()
