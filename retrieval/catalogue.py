"""The list of documents of which Milvus holds the chunks, in an SQL database. Knows no Milvus.

This is the truth about which document is there and in which version. Rows in Milvus carry the
number of the batch that they were written in; a document row names the two batches (chunks,
windows) that count. Replacing a document is one transaction here that names others, whatever
Milvus does meanwhile. Batches that count for nobody are listed until their rows are gone:
`writing` while a process fills them, `dead` after that. Numbers are given out one transaction
after the other, so whoever knows the newest number and this list knows what to look past.

Several libraries may share one database and one Milvus, told apart by `owner`.
"""

from __future__ import annotations

import json
import os
import socket
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import psutil
import sqlalchemy as sa

from retrieval.catalogue_database import CatalogueDatabase
from retrieval.catalogue_numbers import count_terms, number_of, take
from retrieval.catalogue_reading import CatalogueReading, Place
from retrieval.catalogue_tables import (
    BATCHES,
    COUNTERS,
    DOCUMENTS,
    OWNERS,
    Batch,
    Written,
    document_row,
    unpacked,
)
from retrieval.tables import title_of
from retrieval.types import CleanDocument, DocumentInfo, RetrievalError

ABANDONED_S = 3600.0
"""A batch of another machine that nobody has written to for so long is nobody's any more."""
TERMS_AT_ONCE = 500
CHUNKS = "chunks"
"""The collection of chunks; those of windows have names of their own."""


@dataclass(frozen=True, slots=True)
class Started:
    """Two new batches, and the first of the ids that were set aside for their rows."""

    batch: Batch
    windows: Batch
    first_chunk: int
    first_window: int


class Catalogue(CatalogueReading):
    """The documents of one owner. Thread-safe; several processes may use one database."""

    def __init__(self, database: CatalogueDatabase, owner: str = "") -> None:
        super().__init__(database, number_of(database, owner))
        self._holder = f"{socket.gethostname()}/{os.getpid()}/{psutil.Process().create_time()}"

    def begin(self, n_chunks: int, n_windows: int, collection: str) -> Started:
        """Set numbers aside for a document's chunks, and its windows in `collection`."""
        with self._database.write() as connection:
            number = take(connection, "batch", 2)
            batch, windows = Batch(number, CHUNKS), Batch(number + 1, collection)
            first_chunk = take(connection, "chunk", n_chunks)
            first_window = take(connection, "window", n_windows)
            for new in (batch, windows):
                self._list(connection, new, "writing")
        return Started(batch, windows, first_chunk, first_window)

    def keep_ids(self, chunk: int) -> None:
        """Never give out ids of chunks up to this: they came with documents of another place."""
        with self._database.write() as connection:
            lower = sa.and_(COUNTERS.c.key == "chunk", COUNTERS.c.value < chunk)
            connection.execute(sa.update(COUNTERS).where(lower).values(value=chunk))

    def touch(self, batch: Batch) -> None:
        """Say that somebody still writes to a batch."""
        with self._database.write() as connection:
            here = BATCHES.c.number == batch.number
            connection.execute(sa.update(BATCHES).where(here).values(touched=time.time()))

    def publish(
        self,
        info: DocumentInfo,
        document: CleanDocument,
        written: Written,
        embedder: str,
        *,
        also: Callable[[str], None] | None = None,
    ) -> DocumentInfo:
        """Let what was written count in place of the document with that name, in one step."""
        with self._changing() as connection:
            self._claim(connection, written.batch, written.windows)
            mine = DOCUMENTS.c.owner == self.owner
            named = sa.select(DOCUMENTS.c.id).where(mine, DOCUMENTS.c.name == info.name)
            info = replace(info, id=connection.execute(named).scalar() or info.id)
            old = self._retire(connection, info.id)
            row = document_row(info, document, written)
            more = {"owner": self.owner, "embedder": embedder, "title": title_of(document.text)}
            connection.execute(sa.insert(DOCUMENTS).values(**row, **more))
            change = Counter(written.counts)
            change.subtract(old or {})
            count_terms(connection, self.owner, change)
            if also:
                also(info.id)
        return info

    def publish_windows(self, place: Place, new: Started, n_windows: int, embedder: str) -> bool:
        """Let these vectors count for that version of a document; False if it is gone."""
        with self._changing() as connection:
            self._claim(connection, new.batch, new.windows)
            here = sa.and_(DOCUMENTS.c.id == place.id, DOCUMENTS.c.windows == place.windows)
            values = {"windows": new.windows.number, "collection": new.windows.collection}
            more = {"first_window": new.first_window, "n_windows": n_windows, "embedder": embedder}
            done = connection.execute(sa.update(DOCUMENTS).where(here).values(**values, **more))
            dead = Batch(place.windows, place.collection) if done.rowcount else new.windows
            self._list(connection, dead, "dead")
        return bool(done.rowcount)

    def remove(self, document_id: str) -> bool:
        """Forget a document in one step; its rows in Milvus are listed as dead."""
        with self._changing() as connection:
            old = self._retire(connection, document_id)
            if old is not None:
                change: Counter[str] = Counter()
                change.subtract(old)
                count_terms(connection, self.owner, change)
        if old is not None:
            self._database.empty_log()
        return old is not None

    def abandon(self, *batches: Batch) -> None:
        """What was begun is not to count; its rows can be removed."""
        numbers = [batch.number for batch in batches]
        with self._database.write() as connection:
            listed = BATCHES.c.number.in_(numbers)
            connection.execute(sa.update(BATCHES).where(listed).values(state="dead"))

    def waste(self) -> list[Batch]:
        """The batches whose rows are to be removed, also those of processes that died."""
        query = sa.select(BATCHES).where(BATCHES.c.owner == self.owner)
        with self._database.read() as connection:
            rows = list(connection.execute(query))
        lost = [row for row in rows if row.state == "writing" and self._is_lost(row)]
        if lost:
            self.abandon(*(Batch(row.number, row.collection) for row in lost))
        dead = [row for row in rows if row.state == "dead"]
        return [Batch(row.number, row.collection) for row in (*dead, *lost)]

    def forget(self, batch: Batch) -> None:
        """Take a batch off the list, whose rows have been removed."""
        with self._database.write() as connection:
            connection.execute(sa.delete(BATCHES).where(BATCHES.c.number == batch.number))

    def exclusive(self, action: Callable[[set[str]], None]) -> None:
        """Run `action` on the ids of all documents while no process can write."""
        with self._database.write() as connection:
            self._lock(connection)
            ids = sa.select(DOCUMENTS.c.id).where(DOCUMENTS.c.owner == self.owner)
            action(set(connection.execute(ids).scalars()))

    @contextmanager
    def _changing(self) -> Iterator[sa.Connection]:
        """A transaction that changes this owner's documents, one after the other."""
        with self._database.write() as connection:
            self._lock(connection)
            generation = OWNERS.c.generation + 1
            mine = OWNERS.c.number == self.owner
            connection.execute(sa.update(OWNERS).where(mine).values(generation=generation))
            yield connection

    def _lock(self, connection: sa.Connection) -> None:
        mine = sa.select(OWNERS).where(OWNERS.c.number == self.owner)
        connection.execute(mine.with_for_update()).one()

    def _list(self, connection: sa.Connection, batch: Batch, state: str) -> None:
        row = {"number": batch.number, "collection": batch.collection, "owner": self.owner}
        more = {"state": state, "holder": self._holder, "touched": time.time()}
        connection.execute(sa.insert(BATCHES).values(**row, **more))

    def _claim(self, connection: sa.Connection, *batches: Batch) -> None:
        numbers = [batch.number for batch in batches]
        mine = sa.and_(BATCHES.c.number.in_(numbers), BATCHES.c.state == "writing")
        if connection.execute(sa.delete(BATCHES).where(mine)).rowcount != len(batches):
            message = "Adding this document took so long that it was given up; add it again."
            raise RetrievalError(message)

    def _retire(self, connection: sa.Connection, document_id: str) -> dict[str, int] | None:
        """Take a document out, and say what its terms counted; None if there is none."""
        here = sa.and_(DOCUMENTS.c.id == document_id, DOCUMENTS.c.owner == self.owner)
        columns = (DOCUMENTS.c.batch, DOCUMENTS.c.windows, DOCUMENTS.c.collection)
        row = connection.execute(sa.select(*columns, DOCUMENTS.c.counts).where(here)).first()
        if row is None:
            return None
        connection.execute(sa.delete(DOCUMENTS).where(here))
        self._list(connection, Batch(row[0], CHUNKS), "dead")
        self._list(connection, Batch(row[1], row[2]), "dead")
        return dict(json.loads(unpacked(row[3])))

    def _is_lost(self, row: sa.Row[Any]) -> bool:
        """Whether the process that writes a batch is gone: known on this machine, else by time."""
        host, number, started = row.holder.rsplit("/", 2)
        if host == socket.gethostname():
            try:
                return bool(psutil.Process(int(number)).create_time() != float(started))
            except psutil.NoSuchProcess:
                return True
        return bool(time.time() - row.touched > ABANDONED_S)


def ids_of(place: Place) -> Sequence[int]:
    """The ids of a document's chunks, in order."""
    return range(place.first_chunk, place.first_chunk + place.n_chunks)
