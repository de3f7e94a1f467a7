"""Numbers that a catalogue gives out and counts: owners, batches, ids, chunks with a term. Knows no
documents."""

from __future__ import annotations

import secrets
from collections import Counter
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from retrieval.catalogue_database import CatalogueDatabase
from retrieval.catalogue_tables import COUNTERS, OWNERS, TERMS

TERMS_AT_ONCE = 500


def library_of(database: CatalogueDatabase) -> str:
    """A name that no other database has, for what belongs to this one elsewhere."""
    kind = _kind(database.dialect)
    first = {"library": secrets.randbits(60), "owner": 0, "batch": 0, "chunk": 0, "window": 0}
    with database.write() as connection:
        rows = [{"key": key, "value": value} for key, value in first.items()]
        connection.execute(kind.insert(COUNTERS).values(rows).on_conflict_do_nothing())
        library = sa.select(COUNTERS.c.value).where(COUNTERS.c.key == "library")
        return f"{connection.execute(library).scalar_one():015x}"


def owners_of(database: CatalogueDatabase) -> list[str]:
    """The names of all who have had a library here."""
    with database.read() as connection:
        return sorted(connection.execute(sa.select(OWNERS.c.name)).scalars())


def number_of(database: CatalogueDatabase, owner: str) -> int:
    with database.write() as connection:
        of_owners = sa.select(COUNTERS).where(COUNTERS.c.key == "owner").with_for_update()
        connection.execute(of_owners).one()
        named = sa.select(OWNERS.c.number).where(OWNERS.c.name == owner)
        number = connection.execute(named).scalar()
        if number is None:
            number = take(connection, "owner", 1)
            row = {"number": number, "name": owner, "generation": 0}
            connection.execute(sa.insert(OWNERS).values(**row))
        return number


def take(connection: sa.Connection, key: str, n: int) -> int:
    """The first of `n` new numbers. Nobody else gets any before this transaction ends."""
    more = sa.update(COUNTERS).where(COUNTERS.c.key == key).values(value=COUNTERS.c.value + n)
    return int(connection.execute(more.returning(COUNTERS.c.value)).scalar_one()) - n + 1


def count_terms(connection: sa.Connection, owner: int, change: Counter[str]) -> None:
    """Add to the number of chunks in which each term stands; a change may be negative."""
    # In one order everywhere, so that no two processes wait for each other.
    rows: list[dict[str, Any]] = [
        {"owner": owner, "term": term, "chunks": count}
        for term, count in sorted(change.items())
        if count
    ]
    if not rows:
        return
    insert = _kind(connection.dialect.name).insert(TERMS)
    total = TERMS.c.chunks + insert.excluded.chunks
    keys = [TERMS.c.owner, TERMS.c.term]
    connection.execute(
        insert.on_conflict_do_update(index_elements=keys, set_={"chunks": total}), rows
    )
    gone = [row["term"] for row in rows if row["chunks"] < 0]
    for begin in range(0, len(gone), TERMS_AT_ONCE):
        some = TERMS.c.term.in_(gone[begin : begin + TERMS_AT_ONCE])
        none_left = sa.and_(TERMS.c.owner == owner, some, TERMS.c.chunks <= 0)
        connection.execute(sa.delete(TERMS).where(none_left))


def _kind(dialect: str) -> Any:
    """The module with the INSERT of a dialect, which alone knows what to do in a conflict."""
    return sqlite if dialect == "sqlite" else postgresql
