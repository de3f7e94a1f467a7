"""`ask`: one question, answered from documents that are read for it and not kept."""

from __future__ import annotations

import argparse
import tempfile
from contextlib import closing
from pathlib import Path
from typing import Any

from chatbot.commands.common import (
    add_documents,
    add_json,
    check_paths,
    checked_text,
    counted,
    note_demo,
    read_documents,
    wait_for_engine,
)
from chatbot.commands.library_hints import stored_documents
from chatbot.commands.replying import CUT, follow
from chatbot.commands.table import sources_text
from chatbot.console import Console
from chatbot.errors import EngineError
from chatbot.interchange import citation_record, trace_record
from chatbot.messages import Turn
from chatbot.records import to_plain
from chatbot.services import build_services
from chatbot.settings import Settings


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("question", metavar="QUESTION", help="the question, in quotes")
    add_documents(parser)
    add_json(parser)


def run(arguments: argparse.Namespace, settings: Settings, console: Console) -> int:
    """Exit code 1 when the reply failed."""
    question = checked_text(arguments.question, "The question")
    check_paths(arguments.documents)
    console.note("Reading the documents…" if arguments.documents else "Starting the model…")
    with tempfile.TemporaryDirectory(prefix="chatbot-ask-") as folder:
        private = settings.in_folder(Path(folder))
        with closing(build_services(private, progress=console.model_progress)) as services:
            ids = read_documents(services.library, arguments.documents, console)
            wait_for_engine(services.engine, console)
            if not arguments.json:
                note_demo(settings, console)
            conversation = services.store.create_conversation()
            services.store.set_documents(conversation.id, list(ids.values()))
            events = services.chat.reply(conversation.id, question)
            turn = follow(events, console, streamed=not arguments.json)
    if arguments.json:
        console.json(turn_record(turn))
    else:
        for line in sources_text(turn, listed_by="; --json lists them"):
            console.result(line)
        if turn.finish == "length":
            console.note(CUT)
        stored = 0 if arguments.documents else stored_documents(settings)
        if stored:
            console.note(
                f"The library has {counted(stored, 'document')}, which ask does not read: "
                "--documents PATH names files, and 'chat' uses the library's by /add NAME."
            )
    if turn.finish in ("error", "memory"):
        raise EngineError(turn.notices[-1].text)
    return 0


def turn_record(turn: Turn) -> dict[str, Any]:
    """A finished turn as the JSON object of the contract."""
    return {
        "answer": to_plain(turn.reply),
        "citations": [citation_record(citation) for citation in turn.citations],
        "trace": trace_record(turn.trace) if turn.trace else None,
        "usage": to_plain(turn.usage),
        "best_sentence": citation_record(turn.best_sentence) if turn.best_sentence else None,
        "unsupported": to_plain(turn.unsupported),
        "notices": to_plain(turn.notices),
        "finish": turn.finish,
    }
