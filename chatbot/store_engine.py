"""Opens the database and puts its errors into sentences: all that is particular to SQLite is here,
and what is particular to PostgreSQL in `store_postgres`.

Knows nothing of the tables. SQLite runs in WAL mode, so readers and the writer do not wait for
each other, with synchronous=FULL: a commit returns only when it is on the disk. NORMAL would
survive kill -9 as well, but after a power loss it may lose the last commits of the log, that is
finished replies. FULL costs one fsync for each of the two commits of a turn.
"""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import cache, partial
from pathlib import Path
from typing import Any, cast

import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import DBAPIError, NoSuchModuleError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from sqlalchemy.util import LRUCache

from chatbot.errors import StoreError
from chatbot.records import RecordError
from chatbot.store_place import Location, describe, parse_url
from chatbot.store_postgres import is_postgres, open_postgres, postgres_sentence, use_snapshots
from chatbot.store_template import empty_database, put_new

log = logging.getLogger(__name__)

MakeTables = Callable[[sa.Engine], None]
BUSY_TIMEOUT_S = 15.0
LOG_TIMEOUT_MS = 200
COMPILED_STATEMENTS = 500
PAGES_KIB = 128
"""What a connection keeps of its file. Hundreds of people have one each, and a file that is read
often is in the memory of the system anyway."""
_WRITES = "chatbot_writes"


def open_engine(location: Location, make_tables: MakeTables | None = None) -> sa.Engine:
    """An engine for a file (Path) or a database URL (str). The folder of the file is made.

    A new file begins with what `make_tables` makes, which must be a function of a module. Raises
    StoreError when the file is damaged or cannot be opened; it is then left as it is.
    """
    if isinstance(location, Path):
        return _open_sqlite(location, make_tables)
    where = describe(location)
    url = parse_url(location)
    if url.get_backend_name() == "sqlite":
        return _open_sqlite(Path(url.database or ""), make_tables)
    try:
        return open_postgres(url, where)
    except (NoSuchModuleError, ModuleNotFoundError) as error:
        message = f"{where} names a driver that is not there ({error}); use postgresql://..."
        raise StoreError(message) from error


def reading(engine: sa.Engine) -> sa.Engine:
    """The same engine; all that is read in one of its transactions is of one moment."""
    return use_snapshots(engine) if is_postgres(engine) else engine


def writing(engine: sa.Engine) -> sa.Engine:
    """The same engine, but its transactions take the write lock when they begin.

    A transaction that reads first and writes later could otherwise fail halfway in SQLite,
    because another program wrote in between. In PostgreSQL transactions lock the conversations
    that they change.
    """
    return engine.execution_options(**{_WRITES: True})


def empty_log(engine: sa.Engine) -> None:
    """Move the write-ahead log into the file and cut it to nothing. Does nothing elsewhere, or
    while another program is reading in it."""
    if engine.dialect.name != "sqlite":
        return
    connection = engine.raw_connection()
    try:
        # One that waits would hold up replies for the sake of a log.
        connection.cursor().execute(f"PRAGMA busy_timeout={LOG_TIMEOUT_MS}")
        connection.cursor().execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        connection.cursor().execute(f"PRAGMA busy_timeout={int(BUSY_TIMEOUT_S * 1000)}")
    except sqlite3.OperationalError as error:
        log.info("The log stays until the program ends: %s", error)
    finally:
        connection.close()


@contextmanager
def store_errors(where: str) -> Iterator[None]:
    """Turn what the database reports into a StoreError. Mistakes in our statements pass through."""
    try:
        yield
    except DBAPIError as error:
        raise StoreError(_sentence(error.orig, where)) from error
    except PoolTimeoutError as error:
        raise StoreError(f"{where} is too busy; try again in a moment.") from error
    except RecordError as error:
        message = f"{where} holds a record that cannot be read ({error}); use a backup of it."
        raise StoreError(message) from error


def _open_sqlite(path: Path, make_tables: MakeTables | None) -> sa.Engine:
    where = describe(path)
    if path.is_dir():
        raise StoreError(f"{where} cannot be opened: it is a folder; move it away.")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if make_tables is not None and not path.exists():
            put_new(path, empty_database(make_tables))
        # Chats are private: SQLite gives its side files the mode of the main one.
        if not path.exists():
            path.touch(mode=0o600)
    except OSError as error:
        raise StoreError(f"{where} cannot be opened: {error.strerror}.") from error
    try:
        _refuse_damaged(path, where)
        _use_wal(path)
    except sqlite3.Error as error:
        raise StoreError(_sentence(error, where)) from error
    model = _model_engine()
    pool = sa.QueuePool(partial(_connect, path), dialect=model.dialect)
    url = sa.URL.create("sqlite", database=str(path))
    engine = sa.Engine(pool, model.dialect, url, execution_options=model.get_execution_options())
    event.listen(engine, "connect", _prepare)
    event.listen(engine, "begin", _begin)
    return engine


@cache
def _model_engine() -> sa.Engine:
    """What the engines of all files have in common: the compiled statements, and what they are
    compiled for.

    With a file for each of hundreds of people, each would otherwise compile all statements once
    more, which is most of the work of a first question, and keep 300 KB of them.
    """
    model = sa.create_engine("sqlite://", poolclass=sa.StaticPool)
    model.connect().close()  # The dialect asks for the version once.
    model.dispose()
    return model.execution_options(compiled_cache=LRUCache(COMPILED_STATEMENTS))


def _connect(path: Path) -> DBAPIConnection:
    # The pool gives a connection to one thread at a time.
    made: Any = sqlite3.connect(path, timeout=BUSY_TIMEOUT_S, check_same_thread=False)
    return cast(DBAPIConnection, made)


def _refuse_damaged(path: Path, where: str) -> None:
    """Look through all pages, read-only, so that a damaged file is not made worse."""
    uri = path.absolute().as_uri() + "?mode=ro"
    with closing(sqlite3.connect(uri, uri=True, timeout=BUSY_TIMEOUT_S)) as connection:
        found = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    if found != "ok":
        raise StoreError(_damaged(where))


def _use_wal(path: Path) -> None:
    """WAL mode is kept in the file, so this once is enough for all connections."""
    with closing(sqlite3.connect(path, timeout=BUSY_TIMEOUT_S)) as connection:
        connection.execute("PRAGMA journal_mode=WAL")


def _prepare(connection: sqlite3.Connection, _record: object) -> None:
    connection.isolation_level = None  # `_begin` starts transactions, not the driver.
    for pragma in (
        "foreign_keys=ON",
        "synchronous=FULL",
        "fullfsync=ON",  # macOS: also empty the cache of the drive. Nothing elsewhere.
        "secure_delete=ON",  # Deleted chats are overwritten, not only unlinked.
        f"cache_size=-{PAGES_KIB}",
    ):
        connection.execute(f"PRAGMA {pragma}")


def _begin(connection: sa.Connection) -> None:
    writes = connection.get_execution_options().get(_WRITES, False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _damaged(where: str) -> str:
    return (
        f"{where} is damaged or not a database; nothing was changed in it. "
        "Move it away or put a backup in its place, then start again."
    )


def _sentence(error: BaseException | None, where: str) -> str:
    said = postgres_sentence(error)
    if said is not None:
        return f"{where} {said}"
    name = str(getattr(error, "sqlite_errorname", ""))
    if name.startswith(("SQLITE_NOTADB", "SQLITE_CORRUPT")):
        return _damaged(where)
    for prefixes, text in _SENTENCES:
        if name.startswith(prefixes):
            return f"{where} {text}"
    reason = " ".join(str(error).split()).rstrip("?.")
    return f"{where} cannot be used: {reason}."


_SENTENCES: tuple[tuple[tuple[str, ...], str], ...] = (
    (
        ("SQLITE_BUSY", "SQLITE_LOCKED"),
        "is in use by another program; try again when that is done.",
    ),
    (("SQLITE_FULL",), "cannot grow because the disk is full; free some space and try again."),
    (
        ("SQLITE_READONLY", "SQLITE_PERM", "SQLITE_AUTH"),
        "cannot be written; check the rights of the file and its folder.",
    ),
    (
        ("SQLITE_CANTOPEN",),
        "cannot be opened; check that it is a file and that its folder may be written.",
    ),
    (("SQLITE_IOERR",), "cannot be read or written: the disk reports an error."),
)
