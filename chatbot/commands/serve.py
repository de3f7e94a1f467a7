"""`serve`: opens the chat in the browser and stays until Ctrl-C."""

from __future__ import annotations

import argparse
import logging
import signal
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from types import FrameType

from chatbot.commands.common import note_lost
from chatbot.console import Console
from chatbot.engine.base import Engine
from chatbot.model_origin import origin_hint
from chatbot.open_files import allow_many
from chatbot.open_marks import marked_open
from chatbot.services import build_services
from chatbot.settings import Settings, flags_of

TERMINATED = 143
_POLL_S = 0.2
LOOKED_FOR = "The server is looked for again by itself."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """No arguments of its own."""


def run(arguments: argparse.Namespace, settings: Settings, console: Console) -> int:
    """The model loads while the page is already there."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, _end_tidily)
    allow_many()
    logging.getLogger("uvicorn.error").addFilter(_no_cancelled_waits)
    console.note("Starting the page…")
    with (
        marked_open(settings.data_dir),
        closing(build_services(settings, progress=console.model_progress)) as services,
        _failure_told(services.engine, console, origin_hint(settings, flags_of(arguments))),
    ):
        services.chat.wake_recall()
        note_lost(services.library, console)
        # The page's library takes seconds to import: the model loads meanwhile.
        from chatbot.ui.server import serve

        serve(services)
    return 0


@contextmanager
def _failure_told(engine: Engine, console: Console, origin: str) -> Iterator[None]:
    """Say on stderr when the model cannot be loaded, since not everyone looks at the page first,
    and when one that is looked for again by itself is there.

    `origin` says where its name comes from.
    """
    ended = threading.Event()

    def watch() -> None:
        told = ""
        while (status := engine.status).state == "loading" or status.again:
            if status.again and status.message != told:
                told = status.message
                console.note(f"chatbot: {told} {LOOKED_FOR}{origin}")
            if ended.wait(_POLL_S):
                return
        if status.state == "failed":
            console.note(f"chatbot: {status.message}{origin}")
        elif told:
            console.note(f"chatbot: {status.message}")

    thread = threading.Thread(target=watch, name="load-watch", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()  # before the engine is closed, which would count as failed, too


def _no_cancelled_waits(record: logging.LogRecord) -> bool:
    """The web server reports its own end, which cuts off a wait, as an error."""
    return "CancelledError" not in record.getMessage()


def _end_tidily(number: int, frame: FrameType | None) -> None:
    """Close the page and the database as Ctrl-C does."""
    raise SystemExit(TERMINATED)
