"""In how many chunks each term stands, kept as documents come and go. Knows no queries.

FTS5 can tell the same, but reads all places of a term for it: milliseconds for a common one in a
large library, and a Korean question has some fifty. Here it is one look.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence

FREQUENCIES_TABLE = """
CREATE TABLE IF NOT EXISTS frequencies (
    term TEXT PRIMARY KEY, chunks INTEGER NOT NULL
) WITHOUT ROWID;
"""
TOKENIZE = 'tokenize = "unicode61 remove_diacritics 0"'
"""How FTS5 takes terms; one of ours is one of its own."""
_ASIDE = (
    f"CREATE VIRTUAL TABLE IF NOT EXISTS temp.aside USING fts5(head, body, content='', {TOKENIZE})",
    "CREATE VIRTUAL TABLE IF NOT EXISTS temp.aside_counts USING fts5vocab(temp, aside, row)",
)
"""One document's terms alone, in memory and of one connection."""
_COUNTED = "frequencies"
"""The key in `meta` that says that the table holds all documents."""
NOTHING_TO_COUNT = f"INSERT INTO meta VALUES ('{_COUNTED}', 1);"
"""For a file that is made now."""


def frequencies_of(connection: sqlite3.Connection, terms: Sequence[str]) -> dict[str, int]:
    """For each known term in how many chunks it stands; others are left out."""
    rows = connection.execute(
        "SELECT term, chunks FROM frequencies WHERE term IN (SELECT value FROM json_each(?))",
        (json.dumps(list(terms)),),
    )
    return dict(rows)


def count_document(connection: sqlite3.Connection, document_id: str) -> None:
    """Add the terms of a document, whose chunks must be stored already."""
    counts = _counts(connection, document_id)
    connection.executemany(
        "INSERT INTO frequencies VALUES (?, ?)"
        " ON CONFLICT (term) DO UPDATE SET chunks = chunks + excluded.chunks",
        counts,
    )


def discount_document(connection: sqlite3.Connection, document_id: str) -> None:
    """Take the terms of a document away, before its chunks are. No term of it alone stays."""
    counts = _counts(connection, document_id)
    connection.executemany("UPDATE frequencies SET chunks = chunks - ?2 WHERE term = ?1", counts)
    connection.executemany(
        "DELETE FROM frequencies WHERE term = ? AND chunks <= 0", ((term,) for term, _ in counts)
    )


def is_counted(connection: sqlite3.Connection) -> bool:
    """Whether the table holds the documents of a file that may be older than it."""
    known = connection.execute("SELECT 1 FROM meta WHERE key = ?", (_COUNTED,)).fetchone()
    return known is not None


def count_all(connection: sqlite3.Connection) -> None:
    """Fill the table from the keyword index, once for a file that is older than the table."""
    if is_counted(connection):  # by another process meanwhile
        return
    connection.execute("DELETE FROM frequencies")
    connection.execute("INSERT INTO frequencies SELECT term, doc FROM term_counts")
    connection.execute("INSERT INTO meta VALUES (?, 1)", (_COUNTED,))


def _counts(connection: sqlite3.Connection, document_id: str) -> list[tuple[str, int]]:
    """Terms in their order, as FTS5 takes them: it writes a few letters otherwise than Python."""
    for statement in _ASIDE:
        connection.execute(statement)
    connection.execute(
        "INSERT INTO temp.aside(rowid, head, body) SELECT rowid, head, body FROM main.terms"
        " WHERE rowid IN (SELECT id FROM chunks WHERE document_id = ?)",
        (document_id,),
    )
    counts = connection.execute("SELECT term, doc FROM temp.aside_counts").fetchall()
    connection.execute("INSERT INTO temp.aside(aside) VALUES ('delete-all')")
    return counts
