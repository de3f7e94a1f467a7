"""The command line: picks the command, reads settings, turns errors into one line and a code.

Knows no command's work; each lives in `chatbot.commands`.
"""

from __future__ import annotations

import argparse
import difflib
import importlib
import logging
import sys
import traceback
from collections.abc import Sequence
from contextlib import redirect_stdout
from typing import Any, NoReturn

from chatbot.commands import COMMANDS
from chatbot.console import Console, quiet_libraries
from chatbot.ending import end
from chatbot.errors import ChatbotError, InputError, ModelError, UnknownModelError
from chatbot.json_logs import log_json
from chatbot.model_origin import origin_hint
from chatbot.settings import Settings, add_flags, flags_of, load_settings
from retrieval.types import RetrievalError

INTERRUPTED = 130
BROKEN_PIPE = 141
DEFAULT_COMMAND = "serve"
SETTINGS_HELP = """\
Settings are also read from chatbot.toml in the working folder (model = ...) and from
the environment (CHATBOT_MODEL=...); flags win over both."""


class _Parser(argparse.ArgumentParser):
    """Reports wrong arguments as every other error is reported."""

    def error(self, message: str) -> NoReturn:
        raise InputError(f"{message}; '{self.prog} --help' explains the arguments.")

    def nearest(self, stray: Sequence[str]) -> str:
        """ " (did you mean --port?)" for flags that are not known."""
        known = [flag for flag in self._option_string_actions if flag.startswith("--")]
        words = [word.partition("=")[0] for word in stray if word.startswith("--")]
        close = [difflib.get_close_matches(word, known, n=1) for word in words]
        meant = ", ".join(found[0] for found in close if found)
        return f" (did you mean {meant}?)" if meant else ""


def entry() -> NoReturn:
    """What `python app.py` and `python -m chatbot` run."""
    quiet_libraries(debug="--debug" in sys.argv)
    try:
        code = main(sys.argv[1:], Console.of_process())
    except SystemExit as leaving:  # --help, or a request to end
        code = leaving.code if isinstance(leaving.code, int) else 0
    end(code)


def main(arguments: Sequence[str], console: Console) -> int:
    """Run one command and return its exit code. Errors of people's making become one line."""
    debug = "--debug" in arguments
    flags: dict[str, Any] = {}
    settings: Settings | None = None
    try:
        if arguments and arguments[0] in ("-h", "--help"):
            console.result(_overview())
            return 0
        name, namespace = _parse(arguments)
        flags = flags_of(namespace)
        settings = load_settings(flags)
        debug = settings.debug
        if settings.log_format == "json":
            log_json(console.err)
        else:
            level = logging.INFO if debug else logging.CRITICAL
            logging.basicConfig(stream=console.err, level=level)
        # Before there are threads, which would each get a place of their own in memory.
        importlib.import_module("chatbot.engine.process_memory").share_one_arena()
        command = importlib.import_module(f"chatbot.commands.{name}")
        if settings.prompts_dir is not None:
            importlib.import_module("chatbot.parts").use_prompts(settings)
        # Whatever a library prints must not mix with the result.
        with redirect_stdout(console.err):
            return int(command.run(namespace, settings, console))
    except KeyboardInterrupt:
        console.clear_progress()
        return INTERRUPTED
    except BrokenPipeError:
        return BROKEN_PIPE
    except Exception as error:
        # The edge of the program: nothing above could act on it.
        if debug:
            traceback.print_exc(file=console.err)
        origin = origin_hint(settings, flags) if settings and _is_of_model(error) else ""
        console.note(f"chatbot: {_sentence(error)}{origin}")
        return error.exit_code if isinstance(error, ChatbotError) else 1


def _parse(arguments: Sequence[str]) -> tuple[str, argparse.Namespace]:
    name, rest = DEFAULT_COMMAND, list(arguments)
    if rest and not rest[0].startswith("-"):
        name = rest.pop(0)
        if name not in COMMANDS:
            raise InputError(_unknown_command(name))
    parser = _Parser(
        prog=f"python -m chatbot {name}",
        description=COMMANDS[name],
        epilog=f"{SETTINGS_HELP}\n'python -m chatbot --help' lists the commands.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    importlib.import_module(f"chatbot.commands.{name}").add_arguments(parser)
    # Only what is the command's own: the settings, which all commands share, would fill a screen.
    own = parser.format_usage().removeprefix("usage: ").rstrip()
    parser.usage = f"{own} [settings]".replace("%", "%%")
    add_flags(parser)
    namespace, stray = parser.parse_known_args(rest)
    if stray:
        late = next((word for word in stray if word in COMMANDS), None)
        if late is not None and rest == list(arguments):
            raise InputError(f"Put the command first: python -m chatbot {late}, then its flags.")
        parser.error(f"unrecognized arguments: {' '.join(stray)}{parser.nearest(stray)}")
    return name, namespace


def _overview() -> str:
    lines = [f"  {name:<9}{text}" for name, text in COMMANDS.items()]
    return "\n".join(
        [
            "usage: python -m chatbot [COMMAND] [arguments and settings]",
            "",
            "commands:",
            *lines,
            "",
            f"Without a command, {DEFAULT_COMMAND} is run. 'python -m chatbot COMMAND --help' "
            "explains a command",
            f"and all settings, such as 'python -m chatbot {DEFAULT_COMMAND} --help'.",
            "",
            SETTINGS_HELP,
        ]
    )


def _unknown_command(name: str) -> str:
    close = difflib.get_close_matches(name, COMMANDS, n=1)
    hint = f"did you mean '{close[0]}'?" if close else f"there are {', '.join(COMMANDS)}."
    return f"There is no command '{name}'; {hint}"


def _is_of_model(error: Exception) -> bool:
    return isinstance(error, ModelError | UnknownModelError)


def _sentence(error: Exception) -> str:
    if isinstance(error, ChatbotError | RetrievalError):
        return " ".join(str(error).split())
    if isinstance(error, ModuleNotFoundError) and not str(error.name).startswith("chatbot"):
        return (
            f"The package '{error.name}' is missing; run 'make run', which installs what is "
            "needed, and use .venv/bin/python for commands."
        )
    if isinstance(error, MemoryError):
        return "The memory of this machine did not suffice; close other programs and try again."
    if isinstance(error, OSError) and error.strerror:
        where = f": {error.filename}" if error.filename else ""
        return f"{error.strerror}{where}"
    return f"Unexpected {type(error).__name__}: {error}; --debug shows where it comes from."
