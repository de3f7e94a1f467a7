"""`chat`: a conversation in the terminal; also reads questions line by line from a pipe."""

from __future__ import annotations

import argparse
import sys
from contextlib import closing, redirect_stdout

from chatbot.commands.common import note_lost, wait_for_engine
from chatbot.commands.terminal import Leave, NoSuchCommandError, Terminal
from chatbot.console import Console
from chatbot.errors import ChatbotError, InputError
from chatbot.open_marks import marked_open
from chatbot.services import build_services
from chatbot.settings import Settings
from retrieval.types import RetrievalError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """No arguments of its own."""


def run(arguments: argparse.Namespace, settings: Settings, console: Console) -> int:
    """Exit code 1 when a piped line failed, unless it is a mistyped command; a person has seen
    what went wrong.

    Raises ModelError before the first line is read when the model cannot be loaded.
    """
    interactive = sys.stdin.isatty()
    failed = False
    with (
        marked_open(settings.data_dir),
        closing(build_services(settings, progress=console.model_progress)) as services,
    ):
        wait_for_engine(services.engine, console)
        note_lost(services.library, console)
        terminal = Terminal(services, console)
        if interactive:
            terminal.greet()
        while True:
            try:
                line = _next_line(console, interactive)
                if line is None:
                    break
                terminal.handle(line)
            except Leave:
                break
            except KeyboardInterrupt:
                if not interactive or terminal.interrupted:
                    raise
                terminal.interrupted = True
                console.note("\nCtrl-C once more, or /quit, leaves.")
            except (ChatbotError, RetrievalError) as error:
                failed = failed or not isinstance(error, NoSuchCommandError)
                console.note(str(error))
    return 1 if failed and not interactive else 0


def _next_line(console: Console, interactive: bool) -> str | None:
    """The next line without its end, None at the end of the input."""
    try:
        if not interactive:
            line = sys.stdin.readline()
            return line.rstrip("\r\n") if line else None
        # input() offers line editing only while stdout is the real one.
        with redirect_stdout(console.out):
            return input("> ")
    except EOFError:
        return None
    except UnicodeDecodeError as error:
        raise InputError("The input is not UTF-8 text; save or send it as UTF-8.") from error
