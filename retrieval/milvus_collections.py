"""The collections of one library in Milvus: made, loaded, filled, searched, counted. Knows which
rows, not which documents.

All reads ask for strong consistency: what any process has written before is seen.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence, Set
from typing import Any, TypeVar

from retrieval.catalogue import CHUNKS
from retrieval.milvus_link import WRITE_S, MilvusLink
from retrieval.milvus_tables import Row, chunks_schema, windows_schema

ROWS_AT_ONCE = 200
"""In one request: some 2 MB; a server takes 64."""
MAX_LOOSE_ROWS = 300
"""milvus-lite indexes what is on disk once, and what is not yet at every search."""
T = TypeVar("T")
STRONG = "Strong"


class MilvusCollections:
    """Collections named `chatbot_LIBRARY_...`. Thread-safe; failures are RetrievalError."""

    def __init__(self, link: MilvusLink, library: str) -> None:
        self._link = link
        self._prefix = f"chatbot_{library}_"
        self._ready: set[tuple[int, str]] = set()
        self._loose: Counter[str] = Counter()
        self._lock = threading.Lock()

    def insert(self, name: str, rows: Sequence[Row], *, dimensions: int = 0) -> None:
        """Add rows to a collection, which is made if it is not there."""
        if rows:
            self._make(name, dimensions)
            self._call(name, lambda c, full: c.insert(full, rows, timeout=WRITE_S))
            self._loose[name] += len(rows)

    def delete_batch(self, name: str, batch: int, owner: int) -> None:
        """Remove the rows of a batch; none is fine, and so is no collection.

        A server takes them off its disk when it compacts, which it does by itself.
        """
        if self._exists(name):
            chosen = f"owner == {owner} and batch == {batch}"
            self._call(name, lambda c, full: c.delete(full, filter=chosen, timeout=WRITE_S))
            self._settle(name, at_most=-1)

    def nearest(
        self,
        name: str,
        vector: Any,
        n_results: int,
        *,
        field: str,
        chosen: str,
        fields: Sequence[str],
    ) -> list[tuple[Row, float]]:
        """The rows with the largest inner products, best first; none without a collection."""
        if not self._exists(name):
            return []
        self._settle(name)
        result = self._call(
            name,
            lambda c, full: c.search(
                full,
                data=[vector],
                anns_field=field,
                limit=n_results,
                filter=chosen,
                output_fields=list(fields),
                search_params={"metric_type": "IP"},
                consistency_level=STRONG,
                timeout=self._link.read_s,
            ),
        )
        return [(dict(hit["entity"]) | {"id": hit["id"]}, hit["distance"]) for hit in result[0]]

    def rows(self, name: str, keys: Sequence[int], fields: Sequence[str]) -> Iterator[Row]:
        """Those of the rows that exist, in no order."""
        for begin in range(0, len(keys), ROWS_AT_ONCE):
            some = list(keys[begin : begin + ROWS_AT_ONCE])
            yield from self._query(name, f"id in {some}", fields)

    @property
    def shown(self) -> str:
        """The address, as it may stand in messages."""
        return self._link.address.shown

    @property
    def epoch(self) -> int:
        """Another number after each new connection."""
        return self._link.epoch

    def count(self, name: str, owner: int, batches: Sequence[int] | None = None) -> int:
        """Rows of an owner, those that do not count among them; or those of some batches."""
        if not self._exists(name):
            return 0
        only = "" if batches is None else f" and batch in {list(batches)}"
        rows = self._query(name, f"owner == {owner}{only}", ["count(*)"])
        return int(rows[0]["count(*)"])

    def keep_batches(self, name: str, batches: Set[int], owner: int, *, newest: int) -> None:
        """Remove the rows of all other batches of an owner up to `newest`."""
        if self._exists(name):
            others = f" and batch not in {sorted(batches)}" if batches else ""
            chosen = f"owner == {owner} and batch <= {newest}{others}"
            self._call(name, lambda c, full: c.delete(full, filter=chosen, timeout=WRITE_S))
            self._settle(name, at_most=-1)

    def of_windows(self) -> list[str]:
        """The names of this library's collections of windows."""
        names = self._link.call(lambda c: c.list_collections(timeout=self._link.read_s))
        start = f"{self._prefix}windows_"
        return sorted(name.removeprefix(self._prefix) for name in names if name.startswith(start))

    def prepare(self) -> None:
        """Make or load the collection of chunks: what would else cost the first question."""
        self._make(CHUNKS, 0)

    def _query(self, name: str, chosen: str, fields: Sequence[str]) -> list[Row]:
        if not self._exists(name):
            return []
        self._settle(name)
        return self._call(
            name,
            lambda c, full: [
                dict(row)
                for row in c.query(
                    full,
                    filter=chosen,
                    output_fields=list(fields),
                    consistency_level=STRONG,
                    timeout=self._link.read_s,
                )
            ],
        )

    def _settle(self, name: str, *, at_most: int = MAX_LOOSE_ROWS) -> None:
        """Have a file sort its rows in and empty its log; servers do so by themselves."""
        if self._link.address.is_file and self._loose[name] > at_most:
            self._call(name, lambda c, full: c.flush(full, timeout=WRITE_S))
            self._loose[name] = 0

    def _call(self, name: str, action: Callable[[Any, str], T]) -> T:
        return self._link.call(lambda client: action(client, self._prefix + name))

    def _exists(self, name: str) -> bool:
        """Whether a collection is there; then it is loaded."""
        if (self._link.epoch, name) in self._ready:
            return True

        def look(client: Any, full: str) -> bool:
            if not client.has_collection(full, timeout=self._link.read_s):
                return False
            client.load_collection(full, timeout=WRITE_S)
            return True

        found = self._call(name, look)
        if found:
            self._ready.add((self._link.epoch, name))
        return found

    def _make(self, name: str, dimensions: int) -> None:
        if self._exists(name):
            return

        def make(client: Any, full: str) -> None:
            made = chunks_schema(client) if name == CHUNKS else windows_schema(client, dimensions)
            schema, indexes = made
            # Two processes may do so at once; Milvus takes the same twice for once.
            client.create_collection(
                full, schema=schema, index_params=indexes, consistency_level=STRONG, timeout=WRITE_S
            )

        with self._lock:
            if not self._call(
                name, lambda c, full: c.has_collection(full, timeout=self._link.read_s)
            ):
                self._call(name, make)
        self._exists(name)
