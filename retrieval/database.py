"""One SQLite file for many threads: a pool of readers, one writer at a time. Knows no tables."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from retrieval.types import RetrievalError

BUSY_S = 30.0


class Database:
    """Connections to a file in WAL mode. Readers see whole transactions and never wait for the
    writer; a killed process leaves the last committed state."""

    def __init__(self, path: Path, schema: str) -> None:
        self._path = path
        self._idle: list[sqlite3.Connection] = []
        self._pool_lock = threading.Lock()
        self._write_lock = threading.RLock()
        self._closed = False
        try:
            with self._connection() as connection:
                connection.executescript(schema)
        except sqlite3.Error as error:
            message = f"The document index {path.name} cannot be opened ({error})."
            raise RetrievalError(message) from error

    @contextmanager
    def read(self) -> Iterator[sqlite3.Connection]:
        """A connection on one snapshot: all queries inside see the same state."""
        with self._connection() as connection:
            connection.execute("BEGIN")
            try:
                yield connection
            finally:
                connection.execute("ROLLBACK")

    @contextmanager
    def write(self) -> Iterator[sqlite3.Connection]:
        """One transaction: all of it is stored when the block ends, nothing when it raises."""
        with self._write_lock, self._connection() as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
            except BaseException:
                connection.execute("ROLLBACK")
                raise
            connection.execute("COMMIT")

    def checkpoint(self) -> None:
        """Empty the write-ahead file, so that deleted text does not stay in it."""
        with self._write_lock, self._connection() as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def close(self) -> None:
        """Close idle connections now and those in use when they come back."""
        with self._pool_lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    @contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
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
        connection.execute("PRAGMA journal_mode=WAL").fetchall()
        connection.execute("PRAGMA synchronous=NORMAL")
        connection.execute("PRAGMA foreign_keys=ON")
        connection.execute("PRAGMA secure_delete=ON").fetchall()
        return connection
