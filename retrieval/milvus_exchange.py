"""Documents out of and into Milvus with their ids. Knows no other place."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from retrieval.catalogue import CHUNKS
from retrieval.chunk_store import Entry, Window
from retrieval.exchange import Exported
from retrieval.milvus_index import MilvusIndex
from retrieval.milvus_tables import WINDOW_FIELDS, key_of, windows_collection
from retrieval.types import RetrievalError


class MovableMilvus(MilvusIndex):
    """A `MilvusIndex` that can be moved from and to."""

    def export(self, document_id: str) -> Exported | None:
        """A document with everything; None if there is none."""
        place, document = self._catalogue.place(document_id), self.document(document_id)
        info = next((info for info in self.documents() if info.id == document_id), None)
        if place is None or document is None or info is None:
            return None
        chunks = self._rows_of(place)
        keys = [key_of(self._owner, place.first_window + at) for at in range(place.n_windows)]
        fields = (*WINDOW_FIELDS, "vector")
        rows = list(self._collections.rows(place.collection, keys, fields)) if keys else []
        if len(chunks) != place.n_chunks or len(rows) != place.n_windows:
            raise RetrievalError(self._presence.sentence([place]))
        windows: dict[int, list[Window]] = {row.id: [] for row in chunks}
        for row in sorted(rows, key=lambda row: int(row["id"])):
            vector = np.asarray(row["vector"], dtype=np.float32)
            windows[row["chunk"]].append(Window(row["start"], row["end"], vector))
        ordered = sorted(chunks, key=lambda row: row.id)
        entries = tuple(Entry(row.chunk, tuple(windows[row.id])) for row in ordered)
        return Exported(info, document, place.embedder, place.first_chunk, entries)

    def sweep(self) -> None:
        """Remove rows that count for nobody and are in no list: those of a time when this address
        was in use, and another one since."""
        view, places = self._catalogue.view(None), self._catalogue.places()
        chunks = {*view.hidden, *(place.batch for place in places)}
        self._collections.keep_batches(CHUNKS, chunks, self._owner, newest=view.newest)
        windows = {*view.hidden, *(place.windows for place in places)}
        for name in self._collections.of_windows():
            self._collections.keep_batches(name, windows, self._owner, newest=view.newest)

    def adopt(self, exported: Exported) -> None:
        """Store a document under the ids that it has. Raises RetrievalError if these are taken."""
        info, entries = exported.info, exported.entries
        vectors = [window.vector for entry in entries for window in entry.windows]
        name = windows_collection(exported.embedder, len(vectors[0])) if vectors else ""
        last = exported.first_chunk + len(entries)
        keys = [key_of(self._owner, i) for i in range(exported.first_chunk, last)]
        if self.by_name(info.name) or any(self._collections.rows(CHUNKS, keys, ["id"])):
            message = f"Another document has the name or the ids of “{info.name}” there already."
            raise RetrievalError(message)
        self._catalogue.keep_ids(last - 1)
        started = self._catalogue.begin(0, len(vectors), name)
        started = replace(started, first_chunk=exported.first_chunk)
        try:
            written = self.write(info, entries, started)
            self._catalogue.publish(info, exported.document, written, exported.embedder)
        except BaseException:
            self._give_up(started)
            raise
