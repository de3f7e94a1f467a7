"""Shows a reply in the terminal while it comes. Knows no command."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from chatbot.chat_events import ChatEvent, NoticeEvent, Queued, TurnDone
from chatbot.console import Console
from chatbot.engine.base import TextDelta
from chatbot.messages import Notice, Turn

CUT = "(the reply reached --reply-tokens)"
"""What is told of a reply that might have gone on."""


def follow(events: Iterator[ChatEvent], console: Console, *, streamed: bool) -> Turn:
    """Run a reply to its end and return the finished turn.

    Notices go to stderr; the text goes to stdout while it comes if `streamed`.
    """
    turn: Turn | None = None
    told: list[Notice] = []
    written = ""
    for event in events:
        if isinstance(event, TextDelta) and streamed:
            written = event.text
            console.result(event.text, end="")
        elif isinstance(event, NoticeEvent):
            told.append(event.notice)
            console.note(event.notice.text)
        elif isinstance(event, Queued):
            console.progress(f"Waiting for {event.position} other replies.")
        elif isinstance(event, TurnDone):
            turn = event.turn
    assert turn is not None, "a reply ends with TurnDone"
    if written and not written.endswith("\n"):
        console.result()
    for notice in turn.notices:
        # What memory did to a reply is known at its end only.
        if notice not in told:
            console.note(notice.text)
    return turn


@contextmanager
def ctrl_c_sets(stop: threading.Event) -> Iterator[None]:
    """The first Ctrl-C sets `stop`, the second raises KeyboardInterrupt as usual."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may handle signals
        return

    def handle(number: int, frame: FrameType | None) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        stop.set()

    before = signal.signal(signal.SIGINT, handle)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
