"""The SQL database of a catalogue, a file or PostgreSQL: opening, transactions, failures. Knows
no documents."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy.exc import ArgumentError, InterfaceError, OperationalError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from retrieval.catalogue_tables import COUNTERS, META
from retrieval.missing import needs_package
from retrieval.types import IndexAwayError, RetrievalError

BUSY_S = 30.0
CONNECT_S = 10
_WRITES = "catalogue_writes"


class CatalogueDatabase:
    """Transactions on the tables of `catalogue_tables`, which it makes. Thread-safe."""

    def __init__(self, location: Path | str) -> None:
        """`location` is a file or an SQLAlchemy URL. Raises RetrievalError."""
        self._engine, self._where = _engine(location)
        self._is_file = self._engine.dialect.name == "sqlite"
        self._closed = False
        try:
            self._make_tables()
        except RetrievalError:
            self._engine.dispose()
            raise

    @property
    def dialect(self) -> str:
        return self._engine.dialect.name

    @contextmanager
    def read(self) -> Iterator[sa.Connection]:
        """All that is read in here is of one moment."""
        with self._begun({} if self._is_file else {"isolation_level": "REPEATABLE READ"}) as c:
            yield c

    @contextmanager
    def write(self) -> Iterator[sa.Connection]:
        """All that is written in here becomes true at once, or not at all."""
        with self._begun({_WRITES: True}) as connection:
            yield connection

    def empty_log(self) -> None:
        """Leave nothing of what was deleted in the write-ahead log of a file."""
        if self._is_file:
            with self._sentences(), self._engine.connect() as connection:
                cursor = connection.connection.cursor()
                cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def close(self) -> None:
        self._closed = True
        self._engine.dispose()

    @contextmanager
    def _begun(self, options: dict[str, object]) -> Iterator[sa.Connection]:
        if self._closed:
            message = "The document library is closed."
            raise RetrievalError(message)
        with self._sentences(), self._engine.connect() as plain:
            connection = plain.execution_options(**options)
            with connection.begin():
                yield connection

    @contextmanager
    def _sentences(self) -> Iterator[None]:
        try:
            yield
        except SQLAlchemyError as error:
            reason = str(getattr(error, "orig", None) or type(error).__name__).splitlines()[0]
            message = (
                f"{self._where} cannot be used ({reason}); see that it is there, not full, and "
                "may be written to."
            )
            is_away = isinstance(error, OperationalError | InterfaceError | PoolTimeoutError)
            kind = IndexAwayError if is_away and not self._is_file else RetrievalError
            raise kind(message) from error

    def _make_tables(self) -> None:
        try:
            META.create_all(self._engine)
        except SQLAlchemyError:  # another process makes them just now
            with self._sentences():
                META.create_all(self._engine)
        with self.read() as connection:
            connection.execute(sa.select(COUNTERS).limit(1)).all()


def _engine(location: Path | str) -> tuple[sa.Engine, str]:
    if isinstance(location, Path):
        with suppress(OSError):  # whatever hinders it is told when SQLite opens the file
            location.touch(mode=0o600)
        url = sa.URL.create("sqlite", database=str(location))
        where = f"The list of documents {location}"
    else:
        try:
            url = sa.make_url(location)
        except (ArgumentError, ValueError) as error:
            message = "The database URL cannot be read; see SQLAlchemy's forms."
            raise RetrievalError(message) from error
        if url.drivername in ("postgres", "postgresql"):
            url = url.set(drivername="postgresql+psycopg")
        shown = url.set(query={}).render_as_string(hide_password=True)
        where = f"The list of documents in {shown}"
        if importlib.util.find_spec("psycopg") is None and "psycopg" in url.drivername:
            raise RetrievalError(needs_package(where, "psycopg"))
    if url.get_backend_name() == "sqlite":
        return _sqlite(url), where
    engine = sa.create_engine(url, pool_pre_ping=True, connect_args={"connect_timeout": CONNECT_S})
    return engine, where


def _sqlite(url: sa.URL) -> sa.Engine:
    engine = sa.create_engine(
        url, connect_args={"timeout": BUSY_S, "check_same_thread": False}, pool_size=8
    )

    @sa.event.listens_for(engine, "connect")
    def prepare(connection: object, _record: object) -> None:
        connection.isolation_level = None  # type: ignore[attr-defined]  # we say BEGIN ourselves
        for pragma in ("journal_mode=WAL", "synchronous=NORMAL", "secure_delete=ON"):
            connection.execute(f"PRAGMA {pragma}").fetchall()  # type: ignore[attr-defined]

    @sa.event.listens_for(engine, "begin")
    def begin(connection: sa.Connection) -> None:
        writes = connection.get_execution_options().get(_WRITES)
        # A reader that becomes a writer could be refused; so writers say so at once.
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    return engine
