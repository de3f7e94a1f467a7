"""Who may use the engine next: first come, first served, with positions. Knows no engine."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from chatbot.tally import Tally


class ReplyQueue:
    """A fair queue for one (or more) places at the engine. Safe to use from several threads."""

    def __init__(self, places: int = 1) -> None:
        self.tally = Tally()
        """What all who stand in this line have done."""
        self._places = places
        self._changed = threading.Condition()
        self._tickets: list[object] = []
        self._for_nobody: dict[Callable[[], None], None] = {}

    @contextmanager
    def ticket(self) -> Iterator[Ticket]:
        """Stand in line; the place is given up when the block is left."""
        ticket = object()
        with self._changed:
            self._tickets.append(ticket)
        try:
            yield Ticket(self, ticket)
        finally:
            with self._changed:
                self._tickets.remove(ticket)
                self._changed.notify_all()
                calls: list[Callable[[], None]] = []
                if not self._tickets:
                    calls, self._for_nobody = list(self._for_nobody), {}
            for call in calls:
                call()

    def position(self, ticket: object) -> int:
        """How many have to finish first; 0: it is this one's turn."""
        with self._changed:
            return self._position(ticket)

    def wait(self, ticket: object, timeout_s: float) -> bool:
        """Wait for the turn, at most `timeout_s`. Whether it has come."""
        with self._changed:
            return self._changed.wait_for(lambda: self._position(ticket) == 0, timeout_s)

    @property
    def length(self) -> int:
        """How many are being answered or wait."""
        with self._changed:
            return len(self._tickets)

    def is_empty(self, otherwise: Callable[[], None]) -> bool:
        """Whether nobody is here; if not, `otherwise` is called once as soon as that is so.

        Hundreds of people may wait for this: asking again and again would take a core.
        """
        with self._changed:
            if self._tickets:
                self._for_nobody[otherwise] = None
            return not self._tickets

    def forget(self, call: Callable[[], None]) -> None:
        """Do not call it any more."""
        with self._changed:
            self._for_nobody.pop(call, None)

    def _position(self, ticket: object) -> int:
        return max(self._tickets.index(ticket) - self._places + 1, 0)


class Ticket:
    """A place in the line."""

    def __init__(self, queue: ReplyQueue, key: object) -> None:
        self._queue = queue
        self._key = key

    @property
    def position(self) -> int:
        return self._queue.position(self._key)

    def wait(self, timeout_s: float) -> bool:
        return self._queue.wait(self._key, timeout_s)
