"""Keywords that an earlier version stored, made anew as they are made now. Knows no queries.

Only the words with accents were taken otherwise: all other chunks stay as they are.
"""

from __future__ import annotations

import re
import sqlite3

from retrieval.frequencies import count_document, discount_document
from retrieval.tables import keywords_of, touch

VERSION = 2
"""Of `retrieval.words`: 2 takes the endings off words with accents, too."""
NOTHING_TO_RENEW = f"INSERT INTO meta VALUES ('terms', {VERSION});"
"""For a file that is made now."""
CHUNKS_AT_ONCE = 2_000
"""Renewed in one transaction: some two seconds."""
_DONE_TO = "terms_done_to"
"""The key in `meta` of the last document that is renewed, while others are not."""
_ACCENTED = re.compile("[\u00c0-\u024f\u0300-\u036f\u1e00-\u1eff]")


def are_current(connection: sqlite3.Connection) -> bool:
    """Whether the stored keywords are those that queries are compared by."""
    row = connection.execute("SELECT value FROM meta WHERE key = 'terms'").fetchone()
    return row is not None and int(row[0]) >= VERSION


def renew_terms(connection: sqlite3.Connection) -> bool:
    """Make those of the next documents so, with their counts, in the transaction of the caller;
    whether all are. A killed process begins again behind the last ones that it stored."""
    if are_current(connection):  # another process did it meanwhile
        return True
    row = connection.execute("SELECT value FROM meta WHERE key = ?", (_DONE_TO,)).fetchone()
    names = connection.execute(
        "SELECT id, name FROM documents WHERE id > ? ORDER BY id", (row[0] if row else "",)
    ).fetchall()
    n_chunks, last = 0, ""
    for document_id, name in names:
        if n_chunks >= CHUNKS_AT_ONCE:
            connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (_DONE_TO, last))
            touch(connection)
            return False
        n_chunks += _renew(connection, document_id, name)
        last = document_id
    connection.execute("DELETE FROM meta WHERE key = ?", (_DONE_TO,))
    connection.execute("INSERT OR REPLACE INTO meta VALUES ('terms', ?)", (VERSION,))
    touch(connection)
    return True


def _renew(connection: sqlite3.Connection, document_id: str, name: str) -> int:
    """How many chunks of a document had to be renewed."""
    chunks = connection.execute(
        "SELECT id, context, text FROM chunks WHERE document_id = ?", (document_id,)
    ).fetchall()
    rows = [
        (*keywords_of(name, context, text), chunk_id)
        for chunk_id, context, text in chunks
        if _ACCENTED.search(f"{name} {context} {text}")
    ]
    if rows:
        discount_document(connection, document_id)
        connection.executemany("UPDATE terms SET head = ?, body = ? WHERE rowid = ?", rows)
        count_document(connection, document_id)
    return len(rows)
