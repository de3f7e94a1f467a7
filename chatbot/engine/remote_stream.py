"""One streamed reply in a thread of its own, so that it can be cut off at any moment.

Cutting it off closes its connection, which is how a server learns to stop. Knows no prompt.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import suppress
from queue import Empty, SimpleQueue
from threading import Event, Thread
from typing import Any

import openai

from chatbot.engine.remote_body import KeptBody
from chatbot.engine.remote_chunk import Chunk, chunk_of, whole_chunk
from chatbot.engine.remote_client import RemoteClient
from chatbot.engine.remote_words import says_fault, shown, words_of

_POLL_S = 0.02
_CUT_WAIT_S = 5.0
END_WAIT_S = 10.0
"""After a reply's last word, for the count of its tokens and the end of the stream."""


class StreamCutError(Exception):
    """The reply was cut off on our side."""


class StreamSilentError(Exception):
    """The connection is alive, but no word of a reply comes."""


class NoStreamError(Exception):
    """The server answered with something else; `args` say with what."""


class RemoteStream:
    """Yields the chunks of one request; raises what the client raised."""

    def __init__(self, client: RemoteClient, fields: dict[str, Any], *, is_chat: bool) -> None:
        self._client = client
        self._fields = fields
        self._is_chat = is_chat
        self._queue: SimpleQueue[Chunk | BaseException | None] = SimpleQueue()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[None] | None = None
        self._begun = Event()
        self.opened = False
        """The server has begun to answer, though no text need have come yet."""
        self._thread = Thread(target=self._run, name="remote-reply", daemon=True)

    def chunks(self, stop: Event, *, silence_s: float) -> Iterator[Chunk]:
        """Until the end. Raises StreamCutError soon after `stop` is set, whatever is awaited, and
        StreamSilentError when no word came for `silence_s`: some servers send signs of life that
        hold none, and would do so without end."""
        self._thread.start()
        ended, until = False, time.monotonic() + silence_s
        while not (ended and time.monotonic() > until):
            if stop.is_set():
                raise StreamCutError
            if time.monotonic() > until:
                raise StreamSilentError
            try:
                item = self._queue.get(timeout=_POLL_S)
            except Empty:
                continue
            if item is None:
                return
            if isinstance(item, BaseException):
                raise item
            yield item
            if item.finish and not ended:
                ended, until = True, time.monotonic() + min(silence_s, END_WAIT_S)
            elif (item.text or item.n_thought) and not ended:
                until = time.monotonic() + silence_s

    def close(self) -> None:
        """Close the connection, if it is still open, and wait for that."""
        if not self._thread.is_alive():
            return
        self._begun.wait(_CUT_WAIT_S)
        if self._loop is not None and self._task is not None:
            with suppress(RuntimeError):  # it has just ended by itself
                self._loop.call_soon_threadsafe(self._task.cancel)
        self._thread.join(_CUT_WAIT_S)

    def _run(self) -> None:
        try:
            asyncio.run(self._read())
        except asyncio.CancelledError:
            pass
        except Exception as error:  # raised again by whoever reads the chunks
            self._queue.put(error)
        finally:
            self._begun.set()
            self._queue.put(None)

    async def _read(self) -> None:
        self._loop, self._task = asyncio.get_running_loop(), asyncio.current_task()
        self._begun.set()
        async with self._client.streaming() as client:
            api = client.chat.completions if self._is_chat else client.completions
            stream: Any = await api.create(**self._fields, stream=True)
            self.opened = True
            body = KeptBody(stream.response.aiter_bytes())
            stream.response.aiter_bytes = body.parts  # where the client reads them
            try:
                await self._hand_on(stream, body)
            finally:
                await stream.close()

    async def _hand_on(self, stream: Any, body: KeptBody) -> None:
        """Raises NoStreamError; openai.APIError where a fault is reported in place of a reply."""
        has_come = False
        try:
            async for event in stream:
                body.forget()
                _check_fault(event, stream)
                self._queue.put(chunk_of(event, is_chat=self._is_chat))
                has_come = True
            if has_come or body.is_wordless:
                return
            whole = body.fields() or {}
            _check_fault(whole, stream)
            self._queue.put(whole_chunk(whole, is_chat=self._is_chat))
        except ValueError as error:
            if has_come:
                raise
            kind = stream.response.headers.get("content-type", "").partition(";")[0]
            raise NoStreamError(shown(kind) or "no content type") from error


def _check_fault(said: Any, stream: Any) -> None:
    """Raises openai.APIError for the report of a fault, which the client knows only in one form."""
    fields = said if isinstance(said, dict) else getattr(said, "model_extra", None)
    if says_fault(fields) and not getattr(said, "choices", None):
        request = stream.response.request
        raise openai.APIError(words_of(fields), request=request, body=fields)


class Backoff:
    """How long to wait before the next attempt; each wait is twice the last, up to a limit."""

    def __init__(self, *, attempts: int, first_s: float, most_s: float) -> None:
        self._left = attempts
        self._wait_s = first_s
        self._most_s = most_s

    def next_s(self, asked_s: float | None) -> float | None:
        """Seconds, at least what the server asked for; None: no more attempts."""
        if self._left <= 0 or (asked_s or 0) > self._most_s:
            return None
        self._left -= 1
        wait_s, self._wait_s = self._wait_s, min(2 * self._wait_s, self._most_s)
        return max(wait_s, asked_s or 0.0)
