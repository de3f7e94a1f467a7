"""`bench`: measurements of the program itself, each in a file of its own."""

from __future__ import annotations

import argparse
import importlib
from pathlib import Path

from chatbot.commands.common import add_json
from chatbot.console import Console
from chatbot.errors import InputError
from chatbot.settings import Settings

BENCHES = ("turns", "plan", "faults", "profile", "reproduce-oom", "kv")
"""Each is `bench_NAME.measure(arguments, settings, console)`, which gives a JSON object."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "name",
        choices=BENCHES,
        help="turns: a long conversation, turn by turn; "
        "plan: planned memory against measured; faults: memory that runs out, and what comes "
        "after; "
        "profile: where time and memory go in a turn; reproduce-oom: how memory grows; "
        "kv: kinds of cache",
    )
    parser.add_argument("--turns", type=int, default=200, help="turns to make (default: 200)")
    parser.add_argument(
        "--check-every",
        type=int,
        default=1,
        metavar="N",
        help="compare every Nth reply with a cold run (default: 1; 0: none)",
    )
    parser.add_argument(
        "--conversation",
        type=Path,
        metavar="FILE",
        help="ask the user's messages of this conversation (default: sentences of "
        "Python's reference)",
    )
    parser.add_argument(
        "--recall-off-too",
        action="store_true",
        help="turns: make them once more without recall, and give its figures beside",
    )
    parser.add_argument(
        "--times", type=int, default=20, help="faults: so often at each place (default: 20)"
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("profile"),
        metavar="FOLDER",
        help="profile: where the traces are written (default: profile)",
    )
    parser.add_argument(
        "--text", type=Path, metavar="FILE", help="kv: read this text (default: Python's reference)"
    )
    parser.add_argument(
        "--tokens", type=int, default=20_000, help="kv: tokens of it to read (default: 20000)"
    )
    add_json(parser)


def run(arguments: argparse.Namespace, settings: Settings, console: Console) -> int:
    """Raises InputError for impossible numbers; nothing of the data folder is touched."""
    if settings.engine_url:
        raise InputError("bench measures a model on this machine; leave --engine-url out.")
    bench = importlib.import_module(f"chatbot.commands.bench_{arguments.name.replace('-', '_')}")
    console.json(bench.measure(arguments, settings, console))
    return 0
