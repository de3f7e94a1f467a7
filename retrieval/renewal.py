"""New vectors for documents that have those of another embedding model. Knows no files."""

from __future__ import annotations

import logging
import sqlite3
import threading

from retrieval.chunk_store import ChunkStore, Window
from retrieval.embed import Embedder
from retrieval.types import ModelUnusableError, RetrievalError
from retrieval.windows import window_text, windows_of

_LOG = logging.getLogger(__name__)


class Renewal:
    """Gives stale documents new vectors in the background. Thread-safe.

    Where the model cannot be had, this is tried again by `check`, which is for those who search.
    """

    def __init__(self, store: ChunkStore, embedder: Embedder) -> None:
        self._store = store
        self._embedder = embedder
        self._closing = threading.Event()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._fault = ""
        if store.stale():
            self._start()

    def check(self, wait_s: float) -> None:
        """Wait for the vectors, this long at most; try again if there was no model for them.

        Raises ModelUnusableError if there still is none.
        """
        with self._lock:
            if self._fault and self.wait(0) and not self._closing.is_set():
                self._start()
        if self.wait(wait_s) and self._fault:
            raise ModelUnusableError(self._fault)

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait until it has ended, whether documents had to be left as they were or not."""
        thread = self._thread
        if thread is None:
            return True
        thread.join(timeout_s)
        return not thread.is_alive()

    def close(self, timeout_s: float) -> None:
        """End it at the next document. One that waits for a model to be fetched is left behind."""
        self._closing.set()
        self.wait(timeout_s)

    def _start(self) -> None:
        self._fault = ""
        self._thread = threading.Thread(target=self._run, name="renewal", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            for document_id in self._store.stale():
                if self._closing.is_set():
                    return
                renew(self._store, document_id, self._embedder)
        except (RetrievalError, sqlite3.Error) as error:
            if isinstance(error, ModelUnusableError):
                self._fault = str(error)
            _LOG.warning("Documents are found by their words only: %s", error)


def renew(store: ChunkStore, document_id: str, embedder: Embedder) -> None:
    """Give a document vectors of this embedder, in one transaction."""
    passages = store.passages(document_id)
    spans = windows_of(passages, embedder)
    texts = [window_text(passages[n], start, end) for n, start, end in spans]
    vectors = embedder.embed_documents(texts)
    made: dict[int, list[Window]] = {item.chunk_id: [] for item in passages}
    for (number, start, end), vector in zip(spans, vectors, strict=True):
        made[passages[number].chunk_id].append(Window(start, end, vector))
    store.put_windows(document_id, made)
