"""`bench`: measurements of the program itself, each in a file of its own."""

from __future__ import annotations

import argparse
import importlib
from pathlib import Path

from chatbot.commands.common import add_json
from chatbot.console import Console
from chatbot.settings import Settings

BENCHES = ("turns",)
"""Each is `bench_NAME.measure(arguments, settings, console)`, which gives a JSON object."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", choices=BENCHES, help="turns: a long conversation, turn by turn")
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
    add_json(parser)


def run(arguments: argparse.Namespace, settings: Settings, console: Console) -> int:
    """Raises InputError for impossible numbers; nothing of the data folder is touched."""
    bench = importlib.import_module(f"chatbot.commands.bench_{arguments.name}")
    console.json(bench.measure(arguments, settings, console))
    return 0
