"""`import`: chats from JSON files into the list of chats; one result line per chat."""

from __future__ import annotations

import argparse
from contextlib import closing
from pathlib import Path

from chatbot.commands.common import add_json, check_paths, counted
from chatbot.console import Console
from chatbot.interchange import read_conversations
from chatbot.parts import open_store
from chatbot.settings import Settings


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "files",
        nargs="+",
        type=Path,
        metavar="FILE",
        help="JSON: an export of this program, a list of messages, or ChatGPT's conversations.json",
    )
    add_json(parser)


def run(arguments: argparse.Namespace, settings: Settings, console: Console) -> int:
    """Nothing is stored unless all files can be read. Single chats of an export that cannot be
    read are named and left out."""
    check_paths(arguments.files)
    files = [(path, read_conversations(path)) for path in arguments.files]
    with closing(open_store(settings)) as store:
        for chat in (chat for _, file in files for chat in file.chats):
            stored = store.import_conversation(chat)
            n_turns = len(stored.turns)
            if arguments.json:
                console.json({"id": stored.id, "title": stored.title, "turns": n_turns})
            else:
                console.result(f"{stored.id}  {counted(n_turns, 'turn')}  {stored.title}")
    for path, file in files:
        for sentence in file.changed:
            console.note(f"{path.name}: {sentence}")
            if arguments.json:
                console.json({"changed": sentence, "file": path.name})
        for reason in file.left_out:
            console.note(f"Left out of {path.name}: {reason}")
            if arguments.json:
                console.json({"left_out": reason, "file": path.name})
    return 0
