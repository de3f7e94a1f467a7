"""New vectors for documents that have those of another embedding model. Knows no files."""

from __future__ import annotations

import logging
import sqlite3
import threading

from retrieval.chunk_store import ChunkStore, Window
from retrieval.embed import Embedder
from retrieval.types import RetrievalError
from retrieval.windows import window_text, windows_of

_LOG = logging.getLogger(__name__)


def renew(store: ChunkStore, embedder: Embedder, closing: threading.Event) -> None:
    """Give them new ones, each document in one transaction, until `closing` is set."""
    for document_id in store.stale():
        if closing.is_set():
            return
        try:
            passages = store.passages(document_id)
            spans = windows_of(passages, embedder)
            texts = [window_text(passages[n], start, end) for n, start, end in spans]
            vectors = embedder.embed_documents(texts)
            made: dict[int, list[Window]] = {item.chunk_id: [] for item in passages}
            for (number, start, end), vector in zip(spans, vectors, strict=True):
                made[passages[number].chunk_id].append(Window(start, end, vector))
            store.put_windows(document_id, made)
        except (RetrievalError, sqlite3.Error) as error:
            _LOG.warning("Documents are found by their words only: %s", error)
            return
