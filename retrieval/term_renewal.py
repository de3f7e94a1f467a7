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
_ACCENTED = re.compile("[\u00c0-\u024f\u0300-\u036f\u1e00-\u1eff]")


def are_current(connection: sqlite3.Connection) -> bool:
    """Whether the stored keywords are those that queries are compared by."""
    row = connection.execute("SELECT value FROM meta WHERE key = 'terms'").fetchone()
    return row is not None and int(row[0]) >= VERSION


def renew_terms(connection: sqlite3.Connection) -> None:
    """Make them so, with their counts, in the transaction of the caller."""
    if are_current(connection):  # another process did it meanwhile
        return
    names = connection.execute("SELECT id, name FROM documents ORDER BY id").fetchall()
    for document_id, name in names:
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
    connection.execute("INSERT OR REPLACE INTO meta VALUES ('terms', ?)", (VERSION,))
    touch(connection)
