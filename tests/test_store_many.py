"""Hundreds of people with a file each, in one process: what they share, and what each keeps."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.dialects.sqlite.base import SQLiteCompiler

from chatbot.messages import Message
from chatbot.store import Store
from chatbot.store_engine import PAGES_KIB


def _talk(path: Path, text: str = "Noted.", n_turns: int = 2) -> Store:
    store = Store(path)
    store.create_conversation("", None, "talk")
    for number in range(n_turns):
        turn = store.begin_turn("talk", f"Question {number}")
        reply = Message(f"r{number}", "assistant", text)
        store.finish_turn("talk", replace(turn, assistant=(reply,), finish="stop"))
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
    assert PAGES_KIB <= 512
