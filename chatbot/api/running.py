"""Replies in threads of their own, their events in the loop of the server. Knows no HTTP.

A reply that nobody listens to any more is told to stop; its thread ends it and stores what there
is.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

from chatbot.api.errors import ApiError
from chatbot.api.mailbox import Mailbox
from chatbot.api.results import Begun
from chatbot.chat_events import ChatEvent

Event = Begun | ChatEvent
Make = Callable[[threading.Event], Iterator[Event]]
MAX_REPLIES = 256
"""More at a time are refused: each has a thread, mostly waiting for the engine."""
SILENCE_S = 10.0
"""After so long without an event, listeners are told that the reply still lives."""


class _End:
    """The last item of a reply's queue, with what ended it."""

    def __init__(self, error: BaseException | None) -> None:
        self.error = error


class Runner:
    """Owns the threads of all replies."""

    def __init__(self, max_replies: int = MAX_REPLIES) -> None:
        self._pool = ThreadPoolExecutor(max_replies, thread_name_prefix="api-reply")
        self._max_replies = max_replies
        self._lock = threading.Lock()
        self._stops: set[threading.Event] = set()
        self._closed = False

    async def events(self, make: Make) -> AsyncGenerator[Event | None, None]:
        """The events of a reply, texts that came meanwhile joined; None after a silence.

        `make` is called in a thread with an event that tells it to stop. Closing the generator
        sets it. Raises what `make` raises, and ApiError when there are too many replies.
        """
        box: Mailbox[Event | _End] = Mailbox(asyncio.get_running_loop())
        stop = self._begin()
        self._pool.submit(self._run, make, stop, box.put)
        try:
            while True:
                items = await box.take(SILENCE_S)
                if not items:
                    yield None
                for item in items:
                    if isinstance(item, _End):
                        if item.error is not None:
                            raise item.error
                        return
                    yield item
        finally:
            stop.set()

    def close(self) -> None:
        """Stop all replies and wait for their ends. Idempotent."""
        with self._lock:
            self._closed = True
            for stop in self._stops:
                stop.set()
        self._pool.shutdown(wait=True)

    def _begin(self) -> threading.Event:
        stop = threading.Event()
        with self._lock:
            if self._closed or len(self._stops) >= self._max_replies:
                sentence = "The server is making as many replies as it can; try again soon."
                raise ApiError(503, sentence, code="server_busy", retry_after_s=1.0)
            self._stops.add(stop)
        return stop

    def _run(
        self,
        make: Make,
        stop: threading.Event,
        put: Callable[[Event | _End], None],
    ) -> None:
        error: BaseException | None = None
        try:
            if not stop.is_set():
                for event in make(stop):
                    put(event)
        except BaseException as caught:
            # Raised again where the events are read.
            error = caught
        finally:
            with self._lock:
                self._stops.discard(stop)
            put(_End(error))
