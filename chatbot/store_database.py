"""Owns the database of the store: opening, transactions, closing. Knows no table."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import sqlalchemy as sa

from chatbot.errors import StoreError
from chatbot.store_engine import describe, empty_log, open_engine, store_errors, writing
from chatbot.store_migrations import migrate


class Database:
    """One database, up to date. Its transactions may begin in any thread."""

    def __init__(self, location: Path | str) -> None:
        """`location` as for Store. Raises StoreError; nothing is then written."""
        self.closed = False
        self._where = describe(location)
        # Threads of one process queue here instead of polling for the lock of the file.
        self._write_lock = threading.Lock()
        self._reader = open_engine(location)
        self._writer = writing(self._reader)
        try:
            with store_errors(self._where):
                migrate(self._writer, self._where)
        except BaseException:
            self._reader.dispose()
            raise

    def close(self) -> None:
        """Let go of the files. Transactions that run in other threads come to their end."""
        with self._write_lock:
            self.closed = True
            self._reader.dispose()

    @contextmanager
    def read(self) -> Iterator[sa.Connection]:
        """All that is read in here is of one moment. Raises StoreError."""
        self._check_open()
        with store_errors(self._where), self._reader.begin() as connection:
            yield connection

    @contextmanager
    def write(self) -> Iterator[sa.Connection]:
        """All that is written in here becomes true at once, or not at all. Raises StoreError."""
        with self._write_lock:
            self._check_open()
            with store_errors(self._where), self._writer.begin() as connection:
                yield connection

    def empty_log(self) -> None:
        """Leave nothing of what was deleted in the log; not while someone is reading in it."""
        with self._write_lock:
            if not self.closed:
                empty_log(self._reader)

    def _check_open(self) -> None:
        if self.closed:
            raise StoreError(f"{self._where} has been closed; start the program again.")
