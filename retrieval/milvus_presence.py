"""Whether the Milvus in use holds the chunks of the documents that the catalogue lists. Knows no
queries.

The catalogue belongs to a data folder or a database, not to an address: with another address it
lists the same documents, and finds nothing of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from retrieval.catalogue import CHUNKS
from retrieval.catalogue_reading import CatalogueReading, Place
from retrieval.milvus_collections import MilvusCollections
from retrieval.types import Lost

AT_ONCE = 500
"""Documents that one question counts the chunks of."""
NAMED = 3


class Presence:
    """Of one owner. Thread-safe: at worst, two threads count the same.

    What was found to be there is not counted again while the connection lasts.
    """

    def __init__(self, catalogue: CatalogueReading, collections: MilvusCollections) -> None:
        self._catalogue = catalogue
        self._collections = collections
        self._there: tuple[int, set[int]] = (-1, set())
        """Of one connection, the batches that were whole."""

    def lost(self, document_ids: Sequence[str] | None) -> Lost:
        """Which of them are not whole; None: of all. Raises RetrievalError."""
        places = self._catalogue.places(document_ids)
        there = self._known()
        asked = [place for place in places if place.batch not in there]
        gone: list[Place] = []
        for begin in range(0, len(asked), AT_ONCE):
            gone += self._not_whole(asked[begin : begin + AT_ONCE])
        there.update({p.batch for p in asked} - {p.batch for p in gone})
        return Lost(tuple(p.id for p in gone), self.sentence(gone) if gone else "")

    def sentence(self, gone: Sequence[Place]) -> str:
        """What is wrong and what to do."""
        names = ", ".join(f"“{place.name}”" for place in gone[:NAMED])
        more = ", …" if len(gone) > NAMED else ""
        n = "1 document" if len(gone) == 1 else f"{len(gone)} documents"
        return (
            f"{self._collections.shown} doesn't hold the passages of {n} of this library "
            f"({names}{more}); move them there with 'library move', start with the --vector-url "
            "that has them, or add them again."
        )

    def _known(self) -> set[int]:
        epoch, there = self._there
        if epoch != self._collections.epoch:
            there = set()
            self._there = self._collections.epoch, there
        return there

    def _not_whole(self, places: Sequence[Place]) -> Iterable[Place]:
        if self._count(places) == sum(place.n_chunks for place in places):
            return []
        if len(places) == 1:
            return places
        half = len(places) // 2
        return [*self._not_whole(places[:half]), *self._not_whole(places[half:])]

    def _count(self, places: Sequence[Place]) -> int:
        batches = [place.batch for place in places]
        return self._collections.count(CHUNKS, self._catalogue.owner, batches)
