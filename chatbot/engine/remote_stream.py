"""One streamed reply in a thread of its own, so that it can be cut off at any moment.

Cutting it off closes its connection, which is how a server learns to stop. Knows no prompt.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from threading import Event, Thread
from typing import Any

from chatbot.engine.remote_client import RemoteClient

_POLL_S = 0.02
_THOUGHTS = ("reasoning_content", "reasoning")
_CUT_WAIT_S = 5.0
END_WAIT_S = 10.0
"""After a reply's last word, for the count of its tokens and the end of the stream."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """What one event of the stream brings."""

    text: str = ""
    n_thought: int = 0
    """Letters that the model thought and that are no part of the reply."""
    token_ids: tuple[int, ...] | None = None
    finish: str | None = None
    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    completion_tokens: int | None = None


class StreamCutError(Exception):
    """The reply was cut off on our side."""


class StreamSilentError(Exception):
    """The connection is alive, but no word of a reply comes."""


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
            try:
                async for event in stream:
                    self._queue.put(_chunk(event, is_chat=self._is_chat))
            finally:
                await stream.close()


def token_count(value: object) -> int | None:
    """A number of tokens as a server tells it; None for what can be none."""
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if 0 <= value < 1 << 31 else None


def _chunk(event: Any, *, is_chat: bool) -> Chunk:
    """Raises ValueError for an event that has another form."""
    try:
        return _read_chunk(event, is_chat=is_chat)
    except (AttributeError, LookupError, TypeError) as error:
        raise ValueError("The server sent an event of another form.") from error


def _read_chunk(event: Any, *, is_chat: bool) -> Chunk:
    choice = event.choices[0] if event.choices else None
    text, finish, ids, n_thought = "", None, None, 0
    if choice is not None:
        delta = getattr(choice, "delta", None) if is_chat else choice
        n_thought = max(len(str(getattr(delta, key, None) or "")) for key in _THOUGHTS)
        text = (getattr(delta, "content" if is_chat else "text", None) or "") if delta else ""
        if not isinstance(text, str):
            raise TypeError("a text of another kind")
        # Half a surrogate is no character; no answer of ours could be sent with it.
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        finish = choice.finish_reason
        ids = getattr(choice, "token_ids", None)
    usage = event.usage
    details = getattr(usage, "prompt_tokens_details", None)
    timings = getattr(event, "timings", None)  # llama.cpp's own server
    cached = getattr(details, "cached_tokens", None)
    if cached is None and isinstance(timings, dict):
        cached = timings.get("cache_n")
    return Chunk(
        text,
        n_thought,
        tuple(ids) if isinstance(ids, list) else None,
        finish,
        token_count(getattr(usage, "prompt_tokens", None)) or None,
        token_count(cached),
        token_count(getattr(usage, "completion_tokens", None)),
    )


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
