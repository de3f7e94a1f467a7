"""The tables of a catalogue, and rows to objects and back. Knows no transactions and no Milvus."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import sqlalchemy as sa

from retrieval.types import CleanDocument, DocumentInfo, PageSpan

META = sa.MetaData()
COUNTERS = sa.Table(
    "library_counters",
    META,
    sa.Column("key", sa.String(20), primary_key=True),
    sa.Column("value", sa.BigInteger, nullable=False),
)
OWNERS = sa.Table(
    "library_owners",
    META,
    sa.Column("number", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("name", sa.Text, nullable=False, unique=True),
    sa.Column("generation", sa.BigInteger, nullable=False),
)
DOCUMENTS = sa.Table(
    "library_documents",
    META,
    sa.Column("id", sa.String(64), primary_key=True),
    sa.Column("owner", sa.BigInteger, sa.ForeignKey("library_owners.number"), nullable=False),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("created", sa.Text, nullable=False),
    sa.Column("batch", sa.BigInteger, nullable=False, unique=True),
    sa.Column("windows", sa.BigInteger, nullable=False, unique=True),
    sa.Column("embedder", sa.Text, nullable=False),
    sa.Column("collection", sa.Text, nullable=False),
    sa.Column("first_window", sa.BigInteger, nullable=False),
    sa.Column("n_windows", sa.BigInteger, nullable=False),
    sa.Column("first_chunk", sa.BigInteger, nullable=False),
    sa.Column("n_chunks", sa.BigInteger, nullable=False),
    sa.Column("n_terms", sa.BigInteger, nullable=False),
    sa.Column("title", sa.Text, nullable=False),
    sa.Column("info", sa.Text, nullable=False),
    sa.Column("text", sa.LargeBinary, nullable=False),
    sa.Column("counts", sa.LargeBinary, nullable=False),
    sa.UniqueConstraint("owner", "name"),
)
TERMS = sa.Table(
    "library_terms",
    META,
    sa.Column("owner", sa.BigInteger, primary_key=True),
    sa.Column("term", sa.Text, primary_key=True),
    sa.Column("chunks", sa.BigInteger, nullable=False),
)
BATCHES = sa.Table(
    "library_batches",
    META,
    sa.Column("number", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("owner", sa.BigInteger, nullable=False),
    sa.Column("collection", sa.Text, nullable=False),
    sa.Column("state", sa.String(10), nullable=False),
    sa.Column("holder", sa.Text, nullable=False),
    sa.Column("touched", sa.Float, nullable=False),
)
"""Rows in Milvus that count for nobody: `writing` ones not yet, `dead` ones no more."""
INFO_COLUMNS = tuple(DOCUMENTS.c[name] for name in ("info", "name", "id"))


@dataclass(frozen=True, slots=True)
class Batch:
    """Rows that one document has in one collection of Milvus, all with this number."""

    number: int
    collection: str


@dataclass(frozen=True, slots=True)
class Written:
    """What was written of a document before it is published."""

    batch: Batch
    windows: Batch
    first_chunk: int
    first_window: int
    n_windows: int
    n_terms: int
    counts: Mapping[str, int]
    """For each term, in how many of the chunks it stands."""


def packed(value: str) -> bytes:
    """Text as bytes, since PostgreSQL's own type has no room for the character 0."""
    return zlib.compress(value.encode(), 3)


def unpacked(value: bytes) -> str:
    return zlib.decompress(value).decode()


def document_row(info: DocumentInfo, document: CleanDocument, written: Written) -> dict[str, Any]:
    """The columns of a document that follow from it; those of the catalogue are missing."""
    more = {
        **asdict(info),
        "spans": [(p.number, p.start, p.end, p.label) for p in document.pages],
        "removed": document.removed,
    }
    return {
        "id": info.id,
        "name": info.name,
        "created": info.created,
        "batch": written.batch.number,
        "windows": written.windows.number,
        "collection": written.windows.collection,
        "first_window": written.first_window,
        "n_windows": written.n_windows,
        "first_chunk": written.first_chunk,
        "n_chunks": info.chunks,
        "n_terms": written.n_terms,
        "info": json.dumps(more),
        "text": packed(document.text),
        "counts": packed(json.dumps(dict(written.counts))),
    }


def info_of(stored: str) -> DocumentInfo:
    values = json.loads(stored)
    del values["spans"], values["removed"]
    return DocumentInfo(**{**values, "warnings": tuple(values["warnings"])})


def spans_of(stored: str) -> tuple[PageSpan, ...]:
    return tuple(PageSpan(*span) for span in json.loads(stored)["spans"])


def removed_of(stored: str) -> tuple[tuple[str, int], ...]:
    return tuple((line, count) for line, count in json.loads(stored)["removed"])


def clean_of(stored: str, text: bytes) -> CleanDocument:
    info = info_of(stored)
    return CleanDocument(
        info.name,
        info.media,
        unpacked(text),
        spans_of(stored),
        info.removed_lines,
        info.warnings,
        removed_of(stored),
    )
