"""Every fault of the database has a sentence and harms nothing; migrations."""

from __future__ import annotations

import os
import sqlite3
import stat
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
import sqlalchemy as sa
from store_samples import long_chat, say

from chatbot import store_engine, store_migrations, store_schema
from chatbot.errors import StoreError
from chatbot.store import Store


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data" / "chats.db"


@pytest.fixture
def store(path: Path) -> Iterator[Store]:
    with Store(path) as opened:
        yield opened


def test_a_damaged_file_is_named_and_left_alone(path: Path) -> None:
    path.parent.mkdir()
    for content in (
        b"no database at all, but quite long " * 200,
        b"SQLite format 3\0" + b"x" * 5000,
    ):
        path.write_bytes(content)
        with pytest.raises(StoreError) as caught:
            Store(path)
        assert str(path) in str(caught.value)
        assert "damaged" in str(caught.value)
        assert path.read_bytes() == content


def overwrite_pages(content: bytearray) -> None:
    for page in range(4, 40):
        content[page * 4096 : page * 4096 + 200] = b"\xff" * 200


def forget_free_pages(content: bytearray) -> None:
    """Wrong only when all is added up: each page by itself can be read."""
    content[36:40] = (7).to_bytes(4, "big")


@pytest.mark.parametrize("damage", [overwrite_pages, forget_free_pages])
def test_damage_is_found_before_anything_is_written(
    path: Path, damage: Callable[[bytearray], None]
) -> None:
    with Store(path) as store:
        store.import_conversation(long_chat(200))
    content = bytearray(path.read_bytes())
    damage(content)
    path.write_bytes(content)
    with pytest.raises(StoreError, match="damaged") as caught:
        Store(path)
    assert str(path) in str(caught.value)
    assert path.read_bytes() == content


def test_a_record_that_is_no_record_is_a_sentence(path: Path, store: Store) -> None:
    chat = store.create_conversation()
    say(store, chat.id, "x")
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute('UPDATE turns SET usage = \'{"prompt_tokens": "many"}\'')
    with pytest.raises(StoreError, match="prompt_tokens") as caught:
        store.load(chat.id)
    assert str(path) in str(caught.value)


def test_a_newer_database_is_refused_and_left_alone(path: Path) -> None:
    with Store(path) as store:
        store.create_conversation("kept")
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("INSERT INTO migrations VALUES ('m999_future', '2099')")
    content = path.read_bytes()
    with pytest.raises(StoreError, match="newer version") as caught:
        Store(path)
    assert str(path) in str(caught.value)
    assert path.read_bytes() == content


def test_a_database_of_another_program_is_refused(path: Path) -> None:
    path.parent.mkdir()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE bookmarks (url TEXT)")
    with pytest.raises(StoreError, match="another program"):
        Store(path)
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT name FROM sqlite_master").fetchall() == [("bookmarks",)]


def test_places_that_cannot_hold_a_database(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    for place in (tmp_path, tmp_path / "file" / "chats.db"):
        with pytest.raises(StoreError, match="cannot be opened") as caught:
            Store(place)
        assert str(place) in str(caught.value)


def test_a_database_that_another_program_keeps_locked(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_engine, "BUSY_TIMEOUT_S", 0.2)
    with Store(path) as store, closing(sqlite3.connect(path, isolation_level=None)) as other:
        chat = store.create_conversation()
        other.execute("BEGIN IMMEDIATE")
        assert store.load(chat.id) == chat
        with pytest.raises(StoreError, match="another program"):
            store.begin_turn(chat.id, "x")
        other.execute("COMMIT")
        store.begin_turn(chat.id, "x")


def test_a_full_disk_is_a_sentence_and_loses_nothing(path: Path, store: Store) -> None:
    chat = store.create_conversation()
    say(store, chat.id, "kept")
    with store._database.read() as connection:
        pages = connection.exec_driver_sql("PRAGMA page_count").scalar()
        connection.exec_driver_sql(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(StoreError, match="disk is full"):
        store.begin_turn(chat.id, "x" * 1_000_000)
    assert [turn.question for turn in store.load(chat.id).turns] == ["kept"]


@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        ("no url", "URL cannot be read"),
        ("nosuch://user:geheim@host/chats", "driver"),
        ("postgresql+nosuch://user:geheim@host/chats", "driver"),
    ],
)
def test_a_url_that_leads_nowhere_is_a_sentence_without_password(url: str, sentence: str) -> None:
    with pytest.raises(StoreError, match=sentence) as caught:
        Store(url)
    assert "geheim" not in str(caught.value)


def test_a_closed_store_says_so(path: Path) -> None:
    store = Store(path)
    store.close()
    store.close()
    with pytest.raises(StoreError, match="closed"):
        store.list_conversations()


@pytest.mark.skipif(os.name == "nt", reason="Windows has no file modes")
def test_chats_are_private(path: Path, store: Store) -> None:
    store.create_conversation()
    for file in path.parent.iterdir():
        assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_commits_reach_the_disk(store: Store) -> None:
    with store._database.read() as connection:
        values = {
            name: connection.exec_driver_sql(f"PRAGMA {name}").scalar()
            for name in ("journal_mode", "synchronous", "foreign_keys", "busy_timeout")
        }
    full = 2
    assert values == {
        "journal_mode": "wal",
        "synchronous": full,
        "foreign_keys": 1,
        "busy_timeout": 15000,
    }


def test_migrations_lead_to_the_tables_of_today(store: Store) -> None:
    with store._database.read() as connection:
        inspector = sa.inspect(connection)
        assert set(inspector.get_table_names()) == set(store_schema.metadata.tables)
        for name, table in store_schema.metadata.tables.items():
            columns = {
                c["name"]: (type(c["type"]), c["nullable"]) for c in inspector.get_columns(name)
            }
            expected = {c.name: (sa_type(c), c.nullable) for c in table.columns}
            assert columns == expected, name
            keys = inspector.get_pk_constraint(name)["constrained_columns"]
            assert keys == [c.name for c in table.primary_key.columns]
            foreign = inspector.get_foreign_keys(name)
            assert len(foreign) == len(table.foreign_keys)
            indexes = {index["name"] for index in inspector.get_indexes(name)}
            assert {index.name for index in table.indexes} <= indexes


def sa_type(column: sa.Column[object]) -> type:
    names = {
        store_schema.StoredText: sa.TEXT,
        sa.Integer: sa.INTEGER,
        sa.BigInteger: sa.BIGINT,
        sa.Boolean: sa.BOOLEAN,
    }
    return names[type(column.type)]


def test_a_step_that_fails_leaves_no_trace_and_is_tried_again(path: Path) -> None:
    def m999_adds_a_table(connection: sa.Connection) -> None:
        connection.exec_driver_sql("CREATE TABLE extra (id TEXT)")
        if fails:
            connection.exec_driver_sql("INSERT INTO nowhere VALUES (1)")

    with Store(path) as store:
        store.create_conversation("kept")
    engine = store_engine.open_engine(path)
    writer = store_engine.writing(engine)
    steps = (*store_migrations.STEPS, m999_adds_a_table)
    fails = True
    with pytest.raises(sa.exc.OperationalError):
        store_migrations.migrate(writer, "x", steps=steps)
    with engine.connect() as connection:
        assert "extra" not in sa.inspect(connection).get_table_names()
    fails = False
    store_migrations.migrate(writer, "x", steps=steps)
    store_migrations.migrate(writer, "x", steps=steps)
    with engine.connect() as connection:
        assert "extra" in sa.inspect(connection).get_table_names()
        names = connection.exec_driver_sql("SELECT name FROM migrations ORDER BY name").scalars()
        known = [step.__name__ for step in store_migrations.STEPS]
        assert list(names) == [*known, "m999_adds_a_table"]
    engine.dispose()


def test_all_statements_are_written_for_postgresql_too() -> None:
    """Nothing particular to SQLite stands outside the engine's file."""
    folder = Path(store_engine.__file__).parent
    for file in folder.glob("store*.py"):
        if file.name != "store_engine.py":
            text = file.read_text(encoding="utf-8").upper()
            for word in ("PRAGMA", "SQLITE3", "ROWID", "INSERT OR", "AUTOINCREMENT,"):
                assert word not in text, (file.name, word)
