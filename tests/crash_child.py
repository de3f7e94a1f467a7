"""A process to be killed: chats, folds or uploads until then, saying what is finished."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path

from chatbot.chat import Chat, TextDelta, TurnDone
from chatbot.engine.scripted import ScriptedEngine, ScriptedReply
from chatbot.settings import Settings
from chatbot.store import Store
from retrieval.embed import ScriptedEmbedder
from retrieval.pipeline import Library

REPLY = "The plan stays as it is, with forty chairs, two tables and a view of the river Douro."
WINDOW_TOKENS = 512
Say = Callable[..., None]


def talk(say: Say, chat: Chat, store: Store, *, fold: bool) -> None:
    conversation_id = store.create_conversation().id
    say("conversation", conversation_id)
    number = 0
    while True:
        number += 1
        for event in chat.reply(conversation_id, f"Question {number}: what about the plan?"):
            if isinstance(event, TextDelta) and not fold:
                say("busy")
            if isinstance(event, TurnDone):
                say("turn", event.turn.id)
        if fold:
            say("busy")
            chat.wait_for_folds()
            summary = store.load(conversation_id).summary
            if summary is not None:
                say("summary", summary.covers)


def edit(say: Say, chat: Chat, store: Store) -> None:
    """Edits questions and switches versions; every reply that was finished stays somewhere."""
    conversation_id = store.create_conversation().id
    say("conversation", conversation_id)
    for number in itertools.count():
        turns = store.load(conversation_id).turns
        if number % 3 == 2:
            first = turns[number % len(turns)]
            events = chat.edit(conversation_id, first.id, f"Edit {number}: what about it?")
        else:
            events = chat.reply(conversation_id, f"Question {number}: what about the plan?")
        for event in events:
            if isinstance(event, TurnDone):
                say("turn", event.turn.id)
        say("busy")
        if number % 3 == 2:
            for versions in store.all_versions(conversation_id).values():
                chat.switch_version(conversation_id, versions[0].id)
                break


def upload(say: Say, library: Library, folder: Path) -> None:
    number = 0
    while True:
        number += 1
        path = folder / f"file{number}.txt"
        lines = [f"Line {n} of file{number} speaks of marker{number}x{n}." for n in range(400)]
        path.write_text("\n\n".join(lines), encoding="utf-8")
        say("busy")
        report = library.ingest(path)
        say("document", report.document_id or "", number, report.chunks)


def work(connection: Connection, phase: str, folder: Path) -> None:
    def say(*words: object) -> None:
        connection.send(words)

    slow = ScriptedReply(REPLY, tokens_per_s=300)
    engine = ScriptedEngine(lambda text, ids: slow, window_tokens=4096)
    store = Store(folder / "chats.db")
    library = Library(
        folder / "library",
        embedder=ScriptedEmbedder(),
        count_tokens=lambda text: len(engine.tokenizer.encode(text)),
    )
    settings = Settings(data_dir=folder, window_tokens=WINDOW_TOKENS, reply_tokens=60)
    chat = Chat(settings=settings, store=store, engine=engine, library=library)
    if phase == "upload":
        upload(say, library, folder)
    if phase == "edit":
        edit(say, chat, store)
    talk(say, chat, store, fold=phase == "fold")
