"""All that is particular to PostgreSQL: how it is opened, and its errors as ends of sentences.

Knows nothing of the tables. Reading transactions see one moment (REPEATABLE READ). Writing ones
lock the row of the conversation that they change, so that several processes take turns.
"""

from __future__ import annotations

import importlib.util

import sqlalchemy as sa

from chatbot.errors import StoreError
from retrieval.missing import needs_package

CONNECT_TIMEOUT_S = 10
LOCK_TIMEOUT_S = 15.0
"""Nobody waits longer for another process that changes the same conversation."""
ABANDONED_S = 60.0
"""A transaction whose process or machine has fallen silent is rolled back after this time."""
# Numbers of our own for locks that belong to no row.
MIGRATION_LOCK = 7_301_001
SWEEP_LOCK = 7_301_002


def is_postgres(engine: sa.Engine | sa.Connection) -> bool:
    return engine.dialect.name == "postgresql"


def open_postgres(url: sa.URL, where: str) -> sa.Engine:
    """An engine for a PostgreSQL database; connects at its first use. Raises StoreError."""
    if url.get_backend_name() != "postgresql":
        message = f"{where} is of a kind for which there is no driver; use postgresql://..."
        raise StoreError(message)
    if url.get_driver_name() == "psycopg" and importlib.util.find_spec("psycopg") is None:
        raise StoreError(needs_package(where, "psycopg"))
    own = url.query.get("options", "")
    options = {
        "lock_timeout": round(LOCK_TIMEOUT_S * 1000),
        "idle_in_transaction_session_timeout": round(ABANDONED_S * 1000),
        "timezone": "UTC",
        "client_encoding": "UTF8",
    }
    given = own if isinstance(own, str) else " ".join(own)
    words = [given, *(f"-c {name}={value}" for name, value in options.items())]
    return sa.create_engine(
        url.update_query_dict({"options": " ".join(words).strip()}),
        connect_args={"connect_timeout": CONNECT_TIMEOUT_S, "application_name": "chatbot"},
        # A server that was started again does not fail the first question after it.
        pool_pre_ping=True,
        pool_size=10,
        max_overflow=10,
    )


def use_snapshots(engine: sa.Engine) -> sa.Engine:
    """The same engine, all of whose transactions only read, and see one moment."""
    return engine.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)


def lock_migrations(connection: sa.Connection) -> None:
    """Let one program after the other change the tables."""
    if is_postgres(connection):
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(MIGRATION_LOCK)))


def compare_by_code_points(connection: sa.Connection) -> None:
    """Let texts be compared and sorted as SQLite does, whatever language the database is set to."""
    if not is_postgres(connection):
        return
    found = connection.exec_driver_sql(
        "SELECT table_name, column_name FROM information_schema.columns "
        "WHERE table_schema = current_schema() AND data_type = 'text' "
        "AND collation_name IS DISTINCT FROM 'C'"
    ).all()
    for table, column in found:
        connection.exec_driver_sql(
            f'ALTER TABLE "{table}" ALTER COLUMN "{column}" TYPE TEXT COLLATE "C"'
        )


def may_sweep(connection: sa.Connection) -> bool:
    """Whether nobody else is cleaning up after dead processes just now."""
    chosen = sa.select(sa.func.pg_try_advisory_xact_lock(SWEEP_LOCK))
    return bool(connection.scalar(chosen))


def refuse_other_encodings(connection: sa.Connection, where: str) -> None:
    """Raises StoreError for a database that cannot hold every text."""
    if not is_postgres(connection):
        return
    encoding = connection.exec_driver_sql("SHOW server_encoding").scalar()
    if encoding != "UTF8":
        message = f"{where} has the encoding {encoding}; make one with ENCODING 'UTF8'."
        raise StoreError(message)


def postgres_sentence(error: BaseException | None) -> str | None:
    """The end of the sentence for an error of PostgreSQL or its driver; None for others."""
    if error is None or not type(error).__module__.startswith("psycopg"):
        return None
    code = str(getattr(error, "sqlstate", None) or "")
    for prefix, text in _SENTENCES:
        if code.startswith(prefix):
            return text
    if not code:
        return _unreached(str(error))
    reason = " ".join(str(error).split()).rstrip("?.")
    return f"cannot be used: {reason}."


def _unreached(said: str) -> str:
    for words, text in _REFUSALS:
        if words in said:
            return text
    return "cannot be reached; see that the server runs and --database-url is right."


_SENTENCES = (
    ("55P03", "is being changed by another process for long; try again in a moment."),
    ("40", "was changed by another process at the same time; try again."),
    ("53100", "cannot grow because the disk is full; free some space and try again."),
    ("53300", "has no room for more connections; raise max_connections or run fewer processes."),
    ("53", "is short of memory or room; see the server's log."),
    ("25006", "may only be read; let --database-url name the primary server."),
    ("42501", "does not let this user do that; grant the rights on its schema."),
    ("28", "refuses the user or the password; see --database-url."),
    ("3D000", "does not exist; create it, or see --database-url."),
    ("3F000", "has no schema to write to; create it, or see its search_path."),
    ("57", "is being shut down or started; try again in a moment."),
    ("08", "cannot be reached; see that the server runs and --database-url is right."),
)

# Before there is a connection, the driver gives words and no code.
_REFUSALS = (
    ("password authentication failed", "refuses the user or the password; see --database-url."),
    ("no pg_hba.conf entry", "refuses this user from this machine; see its pg_hba.conf."),
    ("does not exist", "or its user does not exist; create it, or see --database-url."),
    ("too many clients", _SENTENCES[3][1]),
    ("starting up", _SENTENCES[10][1]),
    ("shutting down", _SENTENCES[10][1]),
)
