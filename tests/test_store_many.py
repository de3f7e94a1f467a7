"""Hundreds of people with a file each, in one process: what they share, and what each keeps."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.dialects.sqlite.base import SQLiteCompiler

from chatbot import store_rows
from chatbot.messages import Message
from chatbot.store import Store
from chatbot.store_engine import PAGES_KIB


def _talk(path: Path, n_turns: int = 2) -> Store:
    store = Store(path)
    store.create_conversation("", None, "talk")
    for number in range(n_turns):
        turn = store.begin_turn("talk", f"Question {number}")
        reply = Message(f"r{number}", "assistant", "Noted.")
        ended = replace(turn, assistant=(reply,), finish="stop", reply_token_ids=(70_001, 70_002))
        store.finish_turn("talk", ended)
        store.load("talk")
    return store


def test_statements_are_compiled_once_for_all_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled: list[object] = []
    original = SQLiteCompiler.__init__

    def counted(self: SQLiteCompiler, *given: Any, **named: Any) -> None:
        compiled.append(given[1] if len(given) > 1 else None)
        original(self, *given, **named)

    _talk(tmp_path / "first.db").close()
    monkeypatch.setattr(SQLiteCompiler, "__init__", counted)
    with _talk(tmp_path / "second.db") as second:
        assert len(second.load("talk").turns) == 2
        assert not compiled


def test_a_connection_keeps_little_of_its_file(tmp_path: Path) -> None:
    with _talk(tmp_path / "chats.db") as store, store._database.read() as connection:
        assert connection.exec_driver_sql("PRAGMA cache_size").scalar() == -PAGES_KIB
    assert PAGES_KIB <= 256


def test_token_ids_are_kept_once_for_all_turns_and_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known: dict[int, int] = {}
    monkeypatch.setattr(store_rows, "_SHARED_IDS", known)
    with _talk(tmp_path / "first.db") as first, _talk(tmp_path / "second.db") as second:
        turns = [*first.load("talk").turns, *second.load("talk").turns]
        assert [turn.reply_token_ids for turn in turns] == [(70_001, 70_002)] * 4
        assert len({id(number) for turn in turns for number in turn.reply_token_ids}) == 2
    monkeypatch.setattr(store_rows, "MOST_SHARED_IDS", 1)
    with _talk(tmp_path / "third.db"):
        assert len(known) == 2  # Not more and more of them.
