"""The tables of a library: their SQL, and rows to objects and back. Knows no transactions."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Sequence
from typing import Any

import numpy as np

from retrieval.chunk_store import Entry, Window
from retrieval.embed import Vectors
from retrieval.frequencies import FREQUENCIES_TABLE, TOKENIZE, discount_document
from retrieval.sentences import sentence_cells
from retrieval.types import CleanDocument, DocumentInfo, Passage
from retrieval.vectors import Ids
from retrieval.words import content_terms, folded, lexical_terms

SCHEMA = f"""
CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS documents (
    id TEXT PRIMARY KEY, name TEXT NOT NULL UNIQUE, media TEXT NOT NULL, sha256 TEXT NOT NULL,
    bytes INTEGER NOT NULL, pages INTEGER NOT NULL, tokens INTEGER NOT NULL,
    removed_lines INTEGER NOT NULL, warnings TEXT NOT NULL, spans TEXT NOT NULL,
    created TEXT NOT NULL, embedder TEXT NOT NULL, text TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS chunks (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    document_id TEXT NOT NULL REFERENCES documents(id) ON DELETE CASCADE,
    start INTEGER NOT NULL, end INTEGER NOT NULL, tokens INTEGER NOT NULL,
    page INTEGER, page_end INTEGER, context TEXT NOT NULL, text TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS chunks_of ON chunks(document_id, start);
CREATE TABLE IF NOT EXISTS windows (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    chunk_id INTEGER NOT NULL REFERENCES chunks(id) ON DELETE CASCADE,
    start INTEGER NOT NULL, end INTEGER NOT NULL, vector BLOB NOT NULL
);
CREATE INDEX IF NOT EXISTS windows_of ON windows(chunk_id);
CREATE TABLE IF NOT EXISTS titles (
    document_id TEXT PRIMARY KEY REFERENCES documents(id) ON DELETE CASCADE, title TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS removed (
    document_id TEXT PRIMARY KEY REFERENCES documents(id) ON DELETE CASCADE, lines TEXT NOT NULL
) WITHOUT ROWID;
CREATE VIRTUAL TABLE IF NOT EXISTS terms USING fts5(
    head, body, {TOKENIZE}
);
CREATE VIRTUAL TABLE IF NOT EXISTS term_counts USING fts5vocab(terms, row);
{FREQUENCIES_TABLE}
INSERT OR IGNORE INTO meta VALUES ('schema', 1), ('generation', 0);
"""
MAX_NAMED = 20
"""Documents that one text can name."""
MAX_TITLE_CHARACTERS = 80
MAX_FIRST_LINE = 400
"""Characters of a line in which a title is looked for, with what stands in brackets."""
HEAD_WEIGHT = 1.0
"""Weight of a word in the file name or the context, against one in the text."""
PASSAGE_FIELDS = (
    *("chunk_id", "document_id", "document", "text", "start", "end", "tokens"),
    *("page", "page_end", "context"),
)
SELECT_PASSAGE = """
    SELECT c.id, c.document_id, d.name, c.text, c.start, c.end, c.tokens, c.page, c.page_end,
           c.context FROM chunks c JOIN documents d ON d.id = c.document_id
"""
INFO_FIELDS = (
    *("id", "name", "media", "pages", "chunks", "tokens", "bytes", "sha256", "created"),
    *("removed_lines", "warnings"),
)
SELECT_INFO = """
    SELECT d.id, d.name, d.media, d.pages, (SELECT count(*) FROM chunks WHERE document_id = d.id),
           d.tokens, d.bytes, d.sha256, d.created, d.removed_lines, d.warnings FROM documents d
"""


def among(document_ids: Sequence[str] | None) -> tuple[str, tuple[str, ...]]:
    if document_ids is None:
        return "", ()
    chosen = (json.dumps(list(document_ids)),)
    return "AND c.document_id IN (SELECT value FROM json_each(?))", chosen


def scope(
    connection: sqlite3.Connection, document_ids: Sequence[str] | None
) -> Sequence[str] | None:
    """None where the documents are all that there are: that is much quicker to search."""
    if document_ids is None:
        return None
    other = connection.execute(
        "SELECT 1 FROM documents WHERE id NOT IN (SELECT value FROM json_each(?)) LIMIT 1",
        (json.dumps(list(document_ids)),),
    )
    return None if other.fetchone() is None else document_ids


def terms_in_lines(text: str) -> str:
    """A line for each sentence cell of a text, with its terms between spaces."""
    return "\n".join(
        " ".join(lexical_terms(text[start:end])) for start, end in sentence_cells(text)
    )


def keywords_of(name: str, context: str, text: str) -> tuple[str, str]:
    """Head and body of a chunk as the keyword index stores them."""
    return " ".join(lexical_terms(f"{name} {context}")), terms_in_lines(text)


def load_vectors(connection: sqlite3.Connection, ids: Ids) -> Vectors:
    """Rows of the vectors of these ids, which must exist and rise."""
    first, last = int(ids[0]), int(ids[-1])
    if last - first < 2 * len(ids):  # nearly all between them: one pass is much quicker
        asked = set(ids.tolist())
        among_them = connection.execute(
            "SELECT id, vector FROM windows WHERE id BETWEEN ? AND ? ORDER BY id", (first, last)
        )
        joined = b"".join(vector for i, vector in among_them if i in asked)
    else:
        rows = connection.execute(
            "SELECT vector FROM windows WHERE id IN (SELECT value FROM json_each(?)) ORDER BY id",
            (json.dumps(ids.tolist()),),
        )
        joined = b"".join(row[0] for row in rows)
    return np.frombuffer(joined, dtype=np.float16).reshape(len(ids), -1).astype(np.float32)


def insert_document(
    connection: sqlite3.Connection, info: DocumentInfo, document: CleanDocument, embedder: str
) -> None:
    spans = [(page.number, page.start, page.end, page.label) for page in document.pages]
    row = (
        *(info.id, info.name, info.media, info.sha256, info.bytes, info.pages, info.tokens),
        *(info.removed_lines, json.dumps(info.warnings), json.dumps(spans), info.created),
        *(embedder, document.text),
    )
    connection.execute(f"INSERT INTO documents VALUES ({','.join('?' * len(row))})", row)
    if document.removed:
        lines = json.dumps(document.removed)
        connection.execute("INSERT INTO removed VALUES (?, ?)", (info.id, lines))
    if title := title_of(document.text):
        connection.execute("INSERT INTO titles VALUES (?, ?)", (info.id, title))


def title_of(text: str) -> str:
    """The first line, folded, when it looks like a title; what stands in brackets left out."""
    first, _, rest = text.strip().partition("\n")
    first = first[:MAX_FIRST_LINE]  # the search for brackets takes the square of its length
    bare = re.sub(r"\(.*?\)", "", first.strip("#*_ \t"))
    good = len(bare) <= MAX_TITLE_CHARACTERS and rest.strip() and len(bare.strip()) > 3
    return folded(bare) if good and content_terms(bare) else ""


def insert_chunk(
    connection: sqlite3.Connection,
    info: DocumentInfo,
    entry: Entry,
    *,
    chunk_id: int | None = None,
) -> None:
    """`chunk_id` None takes the next one."""
    chunk = entry.chunk
    chunk_id = connection.execute(
        "INSERT INTO chunks (id, document_id, start, end, tokens, page, page_end, context, text)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            *(chunk_id, info.id, chunk.start, chunk.end, chunk.tokens, chunk.page, chunk.page_end),
            *(chunk.context, chunk.text),
        ),
    ).lastrowid
    connection.execute(
        "INSERT INTO terms(rowid, head, body) VALUES (?, ?, ?)",
        (chunk_id, *keywords_of(info.name, chunk.context, chunk.text)),
    )
    assert chunk_id is not None
    insert_windows(connection, chunk_id, entry.windows)


def insert_windows(
    connection: sqlite3.Connection, chunk_id: int, windows: Sequence[Window]
) -> None:
    connection.executemany(
        "INSERT INTO windows (chunk_id, start, end, vector) VALUES (?, ?, ?, ?)",
        [(chunk_id, w.start, w.end, w.vector.astype(np.float16).tobytes()) for w in windows],
    )


def delete_document(connection: sqlite3.Connection, document_id: str) -> bool:
    discount_document(connection, document_id)
    connection.execute(
        "DELETE FROM terms WHERE rowid IN (SELECT id FROM chunks WHERE document_id = ?)",
        (document_id,),
    )
    return connection.execute("DELETE FROM documents WHERE id = ?", (document_id,)).rowcount > 0


def generation_of(connection: sqlite3.Connection) -> int:
    """A number that rises with every change of documents."""
    row = connection.execute("SELECT value FROM meta WHERE key = 'generation'").fetchone()
    return int(row[0])


def touch(connection: sqlite3.Connection) -> None:
    connection.execute("UPDATE meta SET value = value + 1 WHERE key = 'generation'")


def info_of(row: tuple[Any, ...]) -> DocumentInfo:
    values = dict(zip(INFO_FIELDS, row, strict=True))
    return DocumentInfo(**{**values, "warnings": tuple(json.loads(values["warnings"]))})


def passage_of(row: tuple[Any, ...]) -> Passage:
    return Passage(score=0.0, **dict(zip(PASSAGE_FIELDS, row, strict=True)))
