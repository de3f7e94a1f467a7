"""New files of chats and documents are copies of an empty one: as they would be without that."""

from __future__ import annotations

import os
import sqlite3
import stat
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from chatbot.store import Store
from retrieval.index import Index


def open_store(path: Path) -> None:
    Store(path).close()


def open_index(path: Path) -> None:
    Index(path).close()


@pytest.fixture(params=[open_store, open_index], ids=["chats", "documents"])
def make(request: pytest.FixtureRequest) -> Callable[[Path], None]:
    made: Callable[[Path], None] = request.param
    return made


def ask(path: Path, statement: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(statement).fetchall()


def no_links(*_: object, **__: object) -> None:
    raise PermissionError("this disk has no hard links")


def test_a_copy_is_what_would_be_made_without_one(
    make: Callable[[Path], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copied, usual = tmp_path / "copied.db", tmp_path / "usual.db"
    links, link = [], os.link

    def linked(source: Path, target: Path, **more: object) -> None:
        assert source.read_bytes()[18:20] == b"\2\2", "SQLite would have to change it at once"
        links.append(target)
        link(source, target)

    monkeypatch.setattr(os, "link", linked)
    make(copied)
    assert links == [copied], "it was not copied"
    monkeypatch.setattr(os, "link", no_links)
    make(usual)
    tables = "SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY type, name"
    assert ask(copied, tables) == ask(usual, tables) != []
    for pragma in ("journal_mode", "page_size", "encoding", "auto_vacuum", "user_version"):
        assert ask(copied, f"PRAGMA {pragma}") == ask(usual, f"PRAGMA {pragma}"), pragma
    assert ask(copied, "PRAGMA journal_mode") == [("wal",)]
    assert ask(copied, "PRAGMA integrity_check") == [("ok",)]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["copied.db", "usual.db"]


def test_a_new_file_of_chats_is_for_its_owner_only(tmp_path: Path) -> None:
    previous = os.umask(0)
    try:
        open_store(tmp_path / "chats.db")
    finally:
        os.umask(previous)
    assert stat.S_IMODE((tmp_path / "chats.db").stat().st_mode) == 0o600


def test_many_that_open_a_new_file_at_once_have_the_same(tmp_path: Path) -> None:
    path = tmp_path / "chats.db"
    with ThreadPoolExecutor(8) as pool:
        stores = list(pool.map(lambda _: Store(path), range(8)))
    for number, store in enumerate(stores):
        store.create_conversation(f"chat {number}")
    assert len(stores[0].list_conversations()) == 8
    for store in stores:
        store.close()


def test_a_file_that_is_there_is_never_overwritten(
    make: Callable[[Path], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "there.db"
    make(path)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE library_mark (text)")
    # Even where another process makes it just after this one looked.
    monkeypatch.setattr(Path, "exists", lambda self, **_: False)
    make(path)
    assert ask(path, "SELECT count(*) FROM library_mark") == [(0,)]


def test_the_empty_file_holds_no_row_of_anybody(tmp_path: Path) -> None:
    with Store(tmp_path / "one.db") as store:
        store.create_conversation("secret")
    with Store(tmp_path / "two.db") as store:
        assert store.list_conversations() == []
    assert b"secret" not in (tmp_path / "two.db").read_bytes()


def test_a_new_index_is_opened_without_a_write(tmp_path: Path) -> None:
    with closing(Index(tmp_path / "index.db")):
        log = tmp_path / "index.db-wal"
        assert not log.exists() or log.stat().st_size == 0
