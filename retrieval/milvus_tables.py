"""The collections of a library in Milvus, and rows to objects and back. Knows no connection.

One collection holds the chunks: text, terms, and a sparse vector of BM25 weights. Another one for
each embedding model and width holds the windows with their vectors, so that those of another model
are not even looked at. Both are searched exactly (FLAT and an inverted index).

Filters are made of numbers only: nothing that a person wrote gets into an expression.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from retrieval.bm25 import document_vector
from retrieval.catalogue_reading import View
from retrieval.chunk_store import Entry, Window, WindowHit
from retrieval.embed import Vectors
from retrieval.tables import terms_in_lines
from retrieval.types import Chunk, Passage
from retrieval.words import lexical_terms

MAX_VARCHAR_BYTES = 65_535
"""Milvus holds no longer text. A chunk with more is read from the document's text."""
OWNER_BITS = 40
NO_PAGE = -1
"""Servers before 2.5 have no empty fields."""
CHUNK_FIELDS = (
    *("id", "batch", "document", "start", "end", "tokens", "page", "page_end"),
    *("context", "text", "head", "body"),
)
WINDOW_FIELDS = ("id", "batch", "chunk", "start", "end")
Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ChunkRow:
    """A chunk as it was stored. `text` is None if it was too long for Milvus."""

    id: int
    batch: int
    chunk: Chunk
    text: str | None
    head: str
    body: str | None

    @property
    def terms(self) -> str:
        """Those of each sentence, in a line."""
        return terms_in_lines(self.chunk.text) if self.body is None else self.body

    def all_terms(self) -> list[str]:
        """Those of file name, context and text."""
        return [*self.head.split(), *self.terms.split()]

    def passage(self, document_id: str, name: str) -> Passage:
        c = self.chunk
        place = (self.id, document_id, name, c.text, c.start, c.end, c.tokens)
        return Passage(*place, 0.0, c.page, c.page_end, c.context)


def key_of(owner: int, number: int) -> int:
    """The primary key in Milvus: libraries of several owners have ids of their own."""
    return (owner << OWNER_BITS) | number


def number_of(key: int) -> int:
    return key & ((1 << OWNER_BITS) - 1)


def windows_collection(embedder: str, dimensions: int) -> str:
    """The name for the vectors of one model in one width."""
    digest = hashlib.blake2b(f"{embedder}\n{dimensions}".encode(), digest_size=6).hexdigest()
    return f"windows_{digest}"


def counting(view: View, owner: int) -> str:
    """The filter for rows that count at that moment."""
    if view.only is not None:
        return f"owner == {owner} and batch in {sorted(view.only)}"
    hidden = f" and batch not in {list(view.hidden)}" if view.hidden else ""
    return f"owner == {owner} and batch <= {view.newest}{hidden}"


def chunk_rows(
    entries: Sequence[Entry], name: str, *, owner: int, batch: int, first: int, document: str
) -> list[Row]:
    """The rows of a document's chunks, but for the sparse vectors, which need a mean length."""
    return [
        _chunk_row(entry.chunk, name)
        | {"id": key_of(owner, first + at), "owner": owner, "batch": batch, "document": document}
        for at, entry in enumerate(entries)
    ]


def with_weights(rows: Iterable[Row], mean_length: float) -> list[Row]:
    """The rows as they are sent; texts too long for Milvus are left out of them."""
    made = []
    for row in rows:
        counts = terms_of_row(row)
        short = {
            key: "" if isinstance(value, str) and _too_long(value) else value
            for key, value in row.items()
        }
        made.append({**short, "words": document_vector(counts, mean_length)})
    return made


def counted(rows: Iterable[Row]) -> tuple[Counter[str], int]:
    """In how many of the chunks each term stands, and how many terms they have in all."""
    counts: Counter[str] = Counter()
    n_terms = 0
    for row in rows:
        terms = terms_of_row(row)
        counts.update(terms.keys())
        n_terms += terms.total()
    return counts, n_terms


def terms_of_row(row: Row) -> Counter[str]:
    """How often each term stands in a chunk, its file name and its context."""
    return Counter([*row["head"].split(), *row["body"].split()])


def window_rows(
    numbered: Iterable[tuple[int, Window]], *, owner: int, batch: int, first: int
) -> list[Row]:
    """Rows of windows, each with the id of its chunk."""
    return [
        {
            "id": key_of(owner, first + at),
            "owner": owner,
            "batch": batch,
            "chunk": chunk_id,
            "start": window.start,
            "end": window.end,
            "vector": as_stored(window.vector),
        }
        for at, (chunk_id, window) in enumerate(numbered)
    ]


def as_stored(vector: Vectors) -> Vectors:
    """Rounded as the local index rounds, so that both find the same."""
    return np.asarray(vector, dtype=np.float32).astype(np.float16).astype(np.float32)


def chunk_of(row: Mapping[str, Any]) -> ChunkRow:
    text, body = row["text"] or None, row["body"] or None
    page, page_end = (None if row[key] == NO_PAGE else row[key] for key in ("page", "page_end"))
    places = (row["start"], row["end"], row["tokens"], page, page_end)
    chunk = Chunk(text or "", *places, row["context"])
    return ChunkRow(number_of(row["id"]), row["batch"], chunk, text, row["head"], body)


def hit_of(row: Mapping[str, Any], cosine: float) -> WindowHit:
    return WindowHit(row["chunk"], row["start"], row["end"], float(cosine))


def chunks_schema(client: Any) -> tuple[Any, Any]:
    """The fields and the indexes of the collection of chunks."""
    from pymilvus import DataType

    schema = client.create_schema(auto_id=False, enable_dynamic_field=False)
    schema.add_field("id", DataType.INT64, is_primary=True)
    for name in ("owner", "batch", "start", "end", "tokens", "page", "page_end"):
        schema.add_field(name, DataType.INT64)
    schema.add_field("document", DataType.VARCHAR, max_length=64)
    for name in ("context", "text", "head", "body"):
        schema.add_field(name, DataType.VARCHAR, max_length=MAX_VARCHAR_BYTES)
    schema.add_field("words", DataType.SPARSE_FLOAT_VECTOR)
    indexes = client.prepare_index_params()
    indexes.add_index("words", index_type="SPARSE_INVERTED_INDEX", metric_type="IP")
    return schema, indexes


def windows_schema(client: Any, dimensions: int) -> tuple[Any, Any]:
    """The fields and the indexes of a collection of windows."""
    from pymilvus import DataType

    schema = client.create_schema(auto_id=False, enable_dynamic_field=False)
    schema.add_field("id", DataType.INT64, is_primary=True)
    for name in ("owner", "batch", "chunk", "start", "end"):
        schema.add_field(name, DataType.INT64)
    schema.add_field("vector", DataType.FLOAT_VECTOR, dim=dimensions)
    indexes = client.prepare_index_params()
    indexes.add_index("vector", index_type="FLAT", metric_type="IP")
    return schema, indexes


def _chunk_row(chunk: Chunk, name: str) -> Row:
    return {
        **{key: getattr(chunk, key) for key in ("start", "end", "tokens")},
        "page": NO_PAGE if chunk.page is None else chunk.page,
        "page_end": NO_PAGE if chunk.page_end is None else chunk.page_end,
        "context": chunk.context,
        "text": chunk.text,
        "head": " ".join(lexical_terms(f"{name} {chunk.context}")),
        "body": terms_in_lines(chunk.text),
    }


def _too_long(text: str) -> bool:
    return len(text) > MAX_VARCHAR_BYTES // 4 and len(text.encode()) > MAX_VARCHAR_BYTES
