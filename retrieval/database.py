"""One SQLite file for many threads: a pool of readers, one writer at a time. Knows no tables."""

from __future__ import annotations

import os
import secrets
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import cache
from pathlib import Path

from retrieval.types import RetrievalError

BUSY_S = 30.0
_OF_THE_DISK = frozenset(
    (
        *(sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY),
        *(sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM),
    )
)


class Database:
    """Connections to a file in WAL mode. Readers see whole transactions and never wait for the
    writer; a killed process leaves the last committed state."""

    def __init__(self, path: Path, schema: str, *, new: str = "") -> None:
        """`schema` is run at each opening; a file that is made here begins with `new`, too."""
        self._path = path
        self._idle: list[sqlite3.Connection] = []
        self._pool_lock = threading.Lock()
        self._write_lock = threading.RLock()
        self._closed = False
        _begin_file(path, schema + new)
        try:
            with self._connection() as connection:
                connection.executescript(schema)
        except RetrievalError:
            self.close()
            raise

    @contextmanager
    def read(self) -> Iterator[sqlite3.Connection]:
        """A connection on one snapshot: all queries inside see the same state."""
        with self._connection() as connection:
            connection.execute("BEGIN")
            try:
                yield connection
            finally:
                if connection.in_transaction:  # not after some faults: SQLite ended it itself
                    connection.execute("ROLLBACK")

    @contextmanager
    def write(self) -> Iterator[sqlite3.Connection]:
        """One transaction: all of it is stored when the block ends, nothing when it raises."""
        with self._write_lock, self._connection() as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

    def checkpoint(self) -> None:
        """Empty the write-ahead file, so that deleted text does not stay in it."""
        with self._write_lock, self._connection() as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def rest(self) -> None:
        """Close idle connections; others are opened at need."""
        with self._pool_lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def close(self) -> None:
        """Close idle connections now and those in use when they come back."""
        with self._pool_lock:
            self._closed = True
        self.rest()

    @contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        """A connection of the pool. What SQLite raises leaves as a RetrievalError."""
        try:
            with self._pooled() as connection:
                yield connection
        except sqlite3.DatabaseError as error:
            raise RetrievalError(_sentence(self._path, error)) from error

    @contextmanager
    def _pooled(self) -> Iterator[sqlite3.Connection]:
        with self._pool_lock:
            if self._closed:
                message = "The document library is closed."
                raise RetrievalError(message)
            connection = self._idle.pop() if self._idle else None
        connection = connection or self._connect()
        try:
            yield connection
        finally:
            with self._pool_lock:
                keep = not self._closed
                if keep:
                    self._idle.append(connection)
            if not keep:
                connection.close()

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self._path, timeout=BUSY_S, isolation_level=None, check_same_thread=False
        )
        try:
            connection.execute("PRAGMA journal_mode=WAL").fetchall()
            connection.execute("PRAGMA synchronous=NORMAL")
            connection.execute("PRAGMA foreign_keys=ON")
            connection.execute("PRAGMA temp_store=MEMORY")
            connection.execute("PRAGMA secure_delete=ON").fetchall()
        except BaseException:
            connection.close()
            raise
        return connection


@cache
def _empty(schema: str) -> bytes:
    """The content of a file in WAL mode with these tables; SQLite takes 30 ms to make one."""
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(schema)
        content = bytearray(connection.serialize())
    content[18:20] = bytes((2, 2))  # SQLite's file format, 1.3.3: the file is in WAL mode
    return bytes(content)


def _begin_file(path: Path, schema: str) -> None:
    """Make the file, where there is none, as a whole or not at all; whatever hinders that hinders
    SQLite, too, and is told when it opens the file."""
    if path.exists():
        return
    made = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
    try:
        # What is in documents and chats is private: SQLite gives its side files the same mode.
        with os.fdopen(os.open(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(_empty(schema))
            file.flush()
            os.fsync(file.fileno())
        os.link(made, path)
    except OSError:
        return
    finally:
        made.unlink(missing_ok=True)


def _sentence(path: Path, error: sqlite3.DatabaseError) -> str:
    """What is wrong with the index, where it is and what to do."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF  # the low byte is the kind of fault
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return f"The document index {path} is in use by another process; try again when it is done."
    if code in _OF_THE_DISK:
        return (
            f"The document index {path} cannot be opened or written ({error}); "
            "see that the disk is not full and that its folder may be written to."
        )
    # The whole folder: beside a new index, the write-ahead file of the old one would be taken for
    # its own, and the kept copies of the files would be deleted as nobody's.
    return (
        f"The document index {path} is damaged ({error}); move the folder {path.parent} away "
        "and add the documents again; the chats are not affected."
    )
