"""Owns the database of the store: opening, transactions, closing. Knows no table."""

from __future__ import annotations

import copy
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

import sqlalchemy as sa

from chatbot.errors import StoreError
from chatbot.store_engine import empty_log, open_engine, reading, store_errors, writing
from chatbot.store_migrations import migrate
from chatbot.store_place import Location, describe
from chatbot.store_postgres import is_postgres
from chatbot.store_schema import LOCAL_OWNER, OWNER_OPTION


class Database:
    """One database, up to date, as one owner sees it. Its transactions may begin in any thread."""

    def __init__(self, location: Location) -> None:
        """`location` as for Store. Raises StoreError; nothing is then written."""
        self.closed = False
        self.owner = LOCAL_OWNER
        self._whole = self
        self._where = describe(location)
        self._engine = open_engine(location, _make_tables)
        # Threads of one process queue here instead of polling for the lock of the file. Of
        # PostgreSQL each transaction locks only the conversation that it changes.
        self._write_lock = threading.Lock()
        self._turns = nullcontext() if is_postgres(self._engine) else self._write_lock
        self._reader = reading(self._engine)
        self._writer = writing(self._engine)
        try:
            with store_errors(self._where):
                migrate(self._writer, self._where)
        except BaseException:
            self._engine.dispose()
            raise

    @property
    def is_shared(self) -> bool:
        """Whether processes of other machines may use it as well."""
        return is_postgres(self._engine)

    def for_owner(self, owner: str) -> Database:
        """The same database as another owner sees it; closed by itself, and with this one."""
        view = copy.copy(self)
        view.owner = owner
        view.closed = False
        return view

    def rest(self) -> None:
        """Close the connections to a file that nobody uses just now; others are opened at need."""
        with self._write_lock:
            if self._whole is self and not self.closed and not self.is_shared:
                self._engine.dispose()

    def close(self) -> None:
        """Let go of the files. Transactions that run in other threads come to their end."""
        with self._write_lock:
            self.closed = True
            if self._whole is self:
                self._engine.dispose()

    @contextmanager
    def read(self) -> Iterator[sa.Connection]:
        """All that is read in here is of one moment. Raises StoreError."""
        self._check_open()
        with store_errors(self._where), self._reader.begin() as connection:
            yield connection.execution_options(**{OWNER_OPTION: self.owner})

    @contextmanager
    def write(self) -> Iterator[sa.Connection]:
        """All that is written in here becomes true at once, or not at all. Raises StoreError."""
        with self._turns:
            self._check_open()
            with store_errors(self._where), self._writer.begin() as connection:
                yield connection.execution_options(**{OWNER_OPTION: self.owner})

    def empty_log(self) -> None:
        """Leave nothing of what was deleted in the log; not while someone is reading in it."""
        with self._write_lock:
            if not self.closed:
                empty_log(self._engine)

    def _check_open(self) -> None:
        if self.closed or self._whole.closed:
            raise StoreError(f"{self._where} has been closed; start the program again.")


def _make_tables(engine: sa.Engine) -> None:
    migrate(writing(engine), "A new database")
