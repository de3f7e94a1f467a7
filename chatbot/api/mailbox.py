"""From the thread of a reply to the loop of the server, texts that come quickly in one. No HTTP.

Each wake-up of the loop, and each event that is sent, costs about as much as a token of a small
model, for everybody in the loop. So the first text goes at once, and what follows within
`PACE_S` together.
"""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress
from typing import Generic, TypeVar

from chatbot.engine.base import TextDelta

T = TypeVar("T")
PACE_S = 0.04
"""25 times a second is as smooth as a reader can see."""


class Mailbox(Generic[T]):
    """Items in their order. One thread puts, and one task of the loop takes."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._lock = threading.Lock()
        self._items: list[T | TextDelta] = []
        self._waiter: asyncio.Future[None] | None = None
        self._wakes_for_text = True
        self._text_at_s = float("-inf")

    def put(self, item: T | TextDelta) -> None:
        """Called by the thread; never waits."""
        is_text = isinstance(item, TextDelta)
        with self._lock:
            last = self._items[-1] if self._items else None
            if isinstance(item, TextDelta) and isinstance(last, TextDelta):
                self._items[-1] = TextDelta(last.text + item.text)
            else:
                self._items.append(item)
            waiter = None
            if self._wakes_for_text or not is_text:
                waiter, self._waiter = self._waiter, None
        if waiter is not None:
            # The loop is closed only when the server ends.
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(_wake, waiter)

    async def take(self, silence_s: float) -> list[T | TextDelta]:
        """What has come, at least one item; none after a silence."""
        rest_s = self._text_at_s + PACE_S - self._loop.time()
        if rest_s > 0:
            await self._wait(rest_s, for_text=False)
        items = self._taken()
        if not items:
            await self._wait(silence_s, for_text=True)
            items = self._taken()
        if items and isinstance(items[-1], TextDelta):
            self._text_at_s = self._loop.time()
        return items

    def _taken(self) -> list[T | TextDelta]:
        with self._lock:
            items, self._items = self._items, []
            return items

    async def _wait(self, seconds: float, *, for_text: bool) -> None:
        """Until the time is up or something is there; with `for_text` False, more than text."""
        waiter = self._loop.create_future()
        with self._lock:
            if self._items if for_text else any(not isinstance(x, TextDelta) for x in self._items):
                return
            self._waiter, self._wakes_for_text = waiter, for_text
        timer = self._loop.call_later(seconds, _wake, waiter)
        try:
            await waiter
        finally:
            timer.cancel()
            with self._lock:
                self._waiter = None


def _wake(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)
