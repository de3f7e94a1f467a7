"""What a server that ends still tells: open streams end, and nothing new begins. Knows no page."""

from __future__ import annotations

import threading

from starlette.responses import PlainTextResponse
from starlette.types import Message, Receive

ENDED = PlainTextResponse("The program has ended.", 503, headers={"x-chat-ended": "yes"})
"""The page's script knows it by its header."""


def until_closing(closing: threading.Event, receive: Receive) -> Receive:
    """As if whoever listens had gone, once the server ends."""
    has_body = True

    async def guarded() -> Message:
        nonlocal has_body
        # A body that breaks off would be told as a fault of whoever sent it.
        if closing.is_set() and not has_body:
            return {"type": "http.disconnect"}
        message = await receive()
        has_body = has_body and bool(message.get("more_body"))
        return message

    return guarded
