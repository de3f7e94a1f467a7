"""Databases of earlier versions open, and what they hold is read as it is today."""

from __future__ import annotations

from pathlib import Path

import pytest

from chatbot import store_engine, store_migrations
from chatbot.messages import Fact, FoldDecision, MemoryFigures, Usage
from chatbot.records import USAGE, fact_id, from_json, to_json
from chatbot.store import Store

OLD = (
    "INSERT INTO conversations (id, title, folded_title, created, updated)"
    " VALUES ('c', 'Old', 'old', '2024', '2024')",
    "INSERT INTO turns (id, conversation_id, position, finish, created, user_messages, usage,"
    " folded_text) VALUES ('t', 'c', 0, 'stop', '2024',"
    """ '[{"id":"m","role":"user","content":"I am Ana."}]', '{"prompt_tokens":3}', 'i am ana.')""",
    "INSERT INTO summaries VALUES ('c', 1, 1, TRUE, 'S.', 2,"
    """ '[{"text":"I am Ana.","turn_id":"t","message_id":"m"}]', 'model', '2024')""",
)


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A database as the first version of the program left it."""
    path = tmp_path / "chats.db"
    engine = store_engine.open_engine(path)
    writer = store_engine.writing(engine)
    store_migrations.migrate(writer, "x", steps=store_migrations.STEPS[:1])
    with writer.begin() as connection:
        for statement in OLD:
            connection.exec_driver_sql(statement)
    engine.dispose()
    return path


def test_a_database_of_the_first_version_opens(old: Path) -> None:
    with Store(old) as store:
        chat = store.load("c")
        assert chat.summary is not None
        assert chat.summary.facts == (Fact("I am Ana.", "t", "m", id=fact_id("m", "I am Ana.")),)
        assert (chat.summary.kept, chat.summary.deleted) == ("", ())
        assert chat.turns[0].usage == Usage(3)
        assert store.fold_decisions("c") == ()


def test_usage_keeps_memory_and_ladder() -> None:
    figures = MemoryFigures(kv_bytes=7, kv_by_conversation={"c": 7})
    usage = Usage(1, memory=figures, ladder=("fold",)) + Usage(2, ladder=("chunks",))
    assert (usage.memory, usage.ladder) == (figures, ("fold", "chunks"))
    assert (usage + Usage(memory=MemoryFigures(kv_bytes=9))).memory == MemoryFigures(kv_bytes=9)
    assert from_json(USAGE, to_json(usage)) == usage


def test_decisions_are_kept_in_order(tmp_path: Path) -> None:
    refused = FoldDecision("2026", 4, False, None, ("invents 7",), "Seven.")
    kept = FoldDecision("2026", 4, True, "extractive", ())
    with Store(tmp_path / "chats.db") as store:
        chat = store.create_conversation()
        store.add_fold_decisions(chat.id, (refused,))
        store.add_fold_decisions(chat.id, (kept, refused))
        store.add_fold_decisions("gone", (kept,))
        assert store.fold_decisions(chat.id) == (refused, kept, refused)
        store.delete(chat.id)
        assert store.fold_decisions(chat.id) == ()
