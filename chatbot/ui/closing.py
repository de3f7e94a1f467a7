"""What a server that ends still tells: open streams end, and nothing new begins. Knows no page."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

ENDED = PlainTextResponse("The program has ended.", 503, headers={"x-chat-ended": "yes"})
"""The page's script knows it by its header."""


class Closing:
    """Whether the server ends, and who has to be told at once. Any thread may call it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._is_set = False
        self._told: set[Callable[[], object]] = set()

    def is_set(self) -> bool:
        """Whether the server ends."""
        return self._is_set

    def set(self) -> None:
        """The server ends: tell everybody who waits. Idempotent."""
        with self._lock:
            self._is_set = True
            told = tuple(self._told)
        for tell in told:
            tell()

    def clear(self) -> None:
        """The server goes on after all."""
        self._is_set = False

    def add(self, tell: Callable[[], object]) -> None:
        """Let `tell` be called once the server ends; at once if it does already."""
        with self._lock:
            self._told.add(tell)
            is_late = self._is_set
        if is_late:
            tell()

    def remove(self, tell: Callable[[], object]) -> None:
        """Nobody waits there any more."""
        with self._lock:
            self._told.discard(tell)


async def run_until_closing(
    closing: Closing, app: ASGIApp, scope: Scope, receive: Receive, send: Send
) -> None:
    """Answer by `app`. A stream that it leaves open as the server ends is completed, which the
    server would print as a fault otherwise."""
    is_open = False

    async def noted(message: Message) -> None:
        nonlocal is_open
        await send(message)
        is_open = message["type"] == "http.response.start" or bool(message.get("more_body"))

    await app(scope, until_closing(closing, receive), noted)
    if is_open and closing.is_set():
        await send({"type": "http.response.body", "body": b""})


def until_closing(closing: Closing, receive: Receive) -> Receive:
    """As if whoever listens had gone, once the server ends; also for a stream that waits by then,
    which would hold the server until it has something to say."""
    has_body = True

    async def guarded() -> Message:
        nonlocal has_body
        # A body that breaks off would be told as a fault of whoever sent it.
        message = await receive() if has_body else await _or_gone(closing, receive)
        has_body = has_body and bool(message.get("more_body"))
        return message

    return guarded


async def _or_gone(closing: Closing, receive: Receive) -> Message:
    if closing.is_set():
        return {"type": "http.disconnect"}
    task, loop = asyncio.current_task(), asyncio.get_running_loop()
    assert task is not None
    waits, is_told = True, False

    def cancel() -> None:
        nonlocal is_told
        if waits:
            is_told = task.cancel()

    def tell() -> None:
        loop.call_soon_threadsafe(cancel)

    closing.add(tell)
    try:
        # A task for it would not do: who only looks for a message gives it no time to begin.
        return await receive()
    except asyncio.CancelledError:
        # Somebody else may have cancelled it, too.
        if is_told and not task.uncancel():
            return {"type": "http.disconnect"}
        raise
    finally:
        waits = False
        closing.remove(tell)
