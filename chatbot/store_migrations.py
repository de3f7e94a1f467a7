"""Brings a database up to the tables of today in small named steps. Knows nothing of their use.

A step, once released, is never changed: it is plain SQL that SQLite and PostgreSQL both take, not
made from today's table objects. New steps go to the end of `STEPS`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import sqlalchemy as sa

from chatbot.errors import StoreError
from chatbot.records import now_text
from chatbot.store_postgres import (
    compare_by_code_points,
    lock_migrations,
    refuse_other_encodings,
)
from chatbot.store_schema import migrations

_LIBRARY = "library_"
"""With this begin the tables of the list of documents, which may be in the same database."""

Step = Callable[[sa.Connection], None]


def m001_initial(connection: sa.Connection) -> None:
    """Conversations, turns, traces, summaries, documents in use, settings."""
    for statement in _INITIAL:
        connection.exec_driver_sql(statement)


def m002_hands(connection: sa.Connection) -> None:
    """What users write into summaries, decisions of folds, branches, chats kept on top."""
    for statement in _HANDS:
        connection.exec_driver_sql(statement)


def m003_brief(connection: sa.Connection) -> None:
    """An index from which the turns of a chat are counted and named without reading them."""
    connection.exec_driver_sql(
        "CREATE INDEX turns_in_brief ON turns (conversation_id, position, id, finish)"
    )


def m004_shared(connection: sa.Connection) -> None:
    """What several processes at one database tell each other."""
    for statement in _SHARED:
        connection.exec_driver_sql(statement)


STEPS: tuple[Step, ...] = (m001_initial, m002_hands, m003_brief, m004_shared)


def migrate(writer: sa.Engine, where: str, *, steps: Sequence[Step] = STEPS) -> None:
    """Apply the steps that are missing, each in a transaction of its own; all at once to a new
    database, whose user is waiting.

    Each transaction excludes other programs that do the same, so two may start at once.
    Raises StoreError, before anything is written, for a database of a newer version or of
    another program.
    """
    names = [step.__name__ for step in steps]
    with writer.connect() as connection:
        _refuse_strangers(connection, where)
        is_new = not connection.dialect.has_table(connection, migrations.name)
        applied = set() if is_new else _applied(connection)
        _refuse_newer(applied, names, where)
        refuse_other_encodings(connection, where)
    if applied == set(names):
        return
    for together in (tuple(steps),) if is_new else [(step,) for step in steps]:
        with writer.begin() as connection:
            lock_migrations(connection)
            connection.exec_driver_sql(_MIGRATIONS)
            _apply(connection, together)


def _apply(connection: sa.Connection, steps: Sequence[Step]) -> None:
    for step in steps:
        if step.__name__ not in _applied(connection):
            step(connection)
            row = {"name": step.__name__, "applied": now_text()}
            connection.execute(sa.insert(migrations).values(row))
            compare_by_code_points(connection)


def _applied(connection: sa.Connection) -> set[str]:
    return set(connection.scalars(sa.select(migrations.c.name)))


def _refuse_strangers(connection: sa.Connection, where: str) -> None:
    found = sa.inspect(connection).get_table_names()
    tables = {name for name in found if not name.startswith(_LIBRARY)}
    if tables and migrations.name not in tables:
        message = (
            f"{where} is a database of another program, so nothing was written to it; "
            "choose another place with --data-dir or --database-url."
        )
        raise StoreError(message)


def _refuse_newer(applied: set[str], known: list[str], where: str) -> None:
    if applied - set(known):
        message = (
            f"{where} was written by a newer version of this program; "
            "update the program, or choose another place with --data-dir or --database-url."
        )
        raise StoreError(message)


_MIGRATIONS = """CREATE TABLE IF NOT EXISTS migrations (
    name TEXT NOT NULL PRIMARY KEY,
    applied TEXT NOT NULL)"""

_INITIAL = (
    """CREATE TABLE conversations (
        id TEXT NOT NULL PRIMARY KEY,
        owner TEXT NOT NULL DEFAULT 'local',
        title TEXT NOT NULL,
        folded_title TEXT NOT NULL,
        system_text TEXT,
        created TEXT NOT NULL,
        updated TEXT NOT NULL)""",
    "CREATE INDEX conversations_by_time ON conversations (owner, updated)",
    """CREATE TABLE turns (
        id TEXT NOT NULL PRIMARY KEY,
        conversation_id TEXT NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
        position INTEGER NOT NULL,
        finish TEXT NOT NULL,
        created TEXT NOT NULL,
        user_messages TEXT,
        assistant_messages TEXT,
        tokenizer_name TEXT,
        reply_token_ids TEXT,
        usage TEXT,
        citations TEXT,
        notices TEXT,
        unsupported TEXT,
        best_sentence TEXT,
        runner TEXT,
        folded_text TEXT NOT NULL,
        CONSTRAINT turns_in_order UNIQUE (conversation_id, position))""",
    "CREATE INDEX turns_by_finish ON turns (finish)",
    """CREATE TABLE traces (
        turn_id TEXT NOT NULL PRIMARY KEY REFERENCES turns (id) ON DELETE CASCADE,
        trace TEXT NOT NULL)""",
    """CREATE TABLE summaries (
        conversation_id TEXT NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
        version INTEGER NOT NULL,
        covers INTEGER NOT NULL,
        valid BOOLEAN NOT NULL,
        text TEXT NOT NULL,
        tokens INTEGER NOT NULL,
        facts TEXT,
        origin TEXT NOT NULL,
        created TEXT NOT NULL,
        PRIMARY KEY (conversation_id, version))""",
    """CREATE TABLE conversation_documents (
        conversation_id TEXT NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
        document_id TEXT NOT NULL,
        position INTEGER NOT NULL,
        enabled BOOLEAN NOT NULL,
        PRIMARY KEY (conversation_id, document_id))""",
    "CREATE INDEX conversation_documents_by_document ON conversation_documents (document_id)",
    "CREATE TABLE settings (key TEXT NOT NULL PRIMARY KEY, value TEXT NOT NULL)",
)

_HANDS = (
    "ALTER TABLE summaries ADD COLUMN kept TEXT NOT NULL DEFAULT ''",
    "ALTER TABLE summaries ADD COLUMN deleted TEXT",
    "ALTER TABLE conversations ADD COLUMN pinned BOOLEAN NOT NULL DEFAULT FALSE",
    """ALTER TABLE conversations ADD COLUMN branch_of TEXT
        REFERENCES conversations (id) ON DELETE CASCADE""",
    "ALTER TABLE conversations ADD COLUMN fork_position INTEGER",
    "CREATE INDEX conversations_by_trunk ON conversations (branch_of, fork_position)",
    """CREATE TABLE fold_decisions (
        conversation_id TEXT NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
        number INTEGER NOT NULL,
        covers INTEGER NOT NULL,
        decision TEXT NOT NULL,
        PRIMARY KEY (conversation_id, number))""",
)

_SHARED = (
    "ALTER TABLE conversations ADD COLUMN edits INTEGER NOT NULL DEFAULT 0",
    "CREATE TABLE runners (name TEXT NOT NULL PRIMARY KEY, lives_until BIGINT NOT NULL)",
    """CREATE TABLE claims (
        kind TEXT NOT NULL,
        name TEXT NOT NULL,
        runner TEXT NOT NULL,
        taken TEXT NOT NULL,
        PRIMARY KEY (kind, name))""",
)
