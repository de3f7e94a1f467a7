"""Tells that a tab was closed while it listened to the queue. Knows no page.

The library's own way is a second stream for each tab, open as long as the tab is. A browser opens
six connections to a host at most, all its tabs together, so that six tabs would hold them all and
nothing could be sent any more. The stream of the queue is there only while something runs.
"""

from __future__ import annotations

from collections.abc import Callable

from starlette.types import Message, Receive, Send

QUEUE = "/gradio_api/queue/data"
_LAST = b'"msg":"close_stream"'
"""What the queue says last; inside a text of somebody its quotes would be escaped. The page's
script closes the stream by itself then."""


def watched(receive: Receive, send: Send, left: Callable[[], None]) -> tuple[Receive, Send]:
    """Call `left` once whoever listens goes before the stream has come to its end."""
    is_over = False

    async def heard() -> Message:
        nonlocal is_over
        message = await receive()
        if message["type"] == "http.disconnect" and not is_over:
            is_over = True
            left()
        return message

    async def sent(message: Message) -> None:
        nonlocal is_over
        if message["type"] == "http.response.body":
            is_last = _LAST in message.get("body", b"") or not message.get("more_body")
            is_over = is_over or is_last
        await send(message)

    return heard, sent
