"""Keyword search over the chunks of a library, by FTS5. Knows no vectors and no ranking of ours."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from retrieval.database import Database
from retrieval.frequencies import frequencies_of
from retrieval.tables import HEAD_WEIGHT, MAX_NAMED, among, generation_of, scope
from retrieval.words import folded

MAX_KNOWN_TERMS = 50_000
"""Terms whose frequency is remembered until documents change."""


@dataclass(frozen=True, slots=True)
class _Frequencies:
    """In how many of `total` chunks a term stands, for the terms asked for so far."""

    generation: int
    total: int
    counts: dict[str, int]


class Keywords:
    """Finds chunks by their terms, and documents by their titles."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._frequencies = _Frequencies(-1, 0, {})

    def named_in(self, text: str, document_ids: Sequence[str] | None = None) -> list[int]:
        """First chunks of the documents whose title stands in `text`, longest titles first.

        Titles that several documents share name none of them.
        """
        with self._database.read() as connection:
            where, values = among(scope(connection, document_ids))
            rows = connection.execute(
                # CROSS: titles first; SQLite would go through all chunks to look for their titles.
                "SELECT min(c.id) FROM titles t CROSS JOIN chunks c USING (document_id)"
                f" WHERE instr(?, t.title) {where} GROUP BY t.title"
                " HAVING count(DISTINCT t.document_id) = 1 ORDER BY length(t.title) DESC LIMIT ?",
                (folded(text), *values, MAX_NAMED),
            )
            return [row[0] for row in rows]

    def lexical(
        self, terms: Sequence[str], n_results: int, document_ids: Sequence[str] | None = None
    ) -> list[int]:
        """Ids of chunks that hold any of the terms, best BM25 first."""
        if not terms:
            return []
        match = " OR ".join(f'"{term}"' for term in dict.fromkeys(terms))
        with self._database.read() as connection:
            where, values = among(scope(connection, document_ids))
            # The plus keeps FTS5 from looking up every term anew for each of these rows.
            chosen = f"AND +rowid IN (SELECT id FROM chunks c WHERE true {where})" if where else ""
            rows = connection.execute(
                f"SELECT rowid FROM terms WHERE terms MATCH ? {chosen}"
                f" ORDER BY bm25(terms, {HEAD_WEIGHT}, 1.0), rowid LIMIT ?",
                (match, *values, n_results),
            )
            return [row[0] for row in rows]

    def terms_of(self, chunk_ids: Sequence[int]) -> dict[int, str]:
        """The stored terms of those of the chunks that exist, as `terms_in_lines` writes them."""
        with self._database.read() as connection:
            rows = connection.execute(
                "SELECT rowid, body FROM terms WHERE rowid IN (SELECT value FROM json_each(?))",
                (json.dumps(list(chunk_ids)),),
            )
            return {row[0]: row[1] for row in rows}

    def term_frequencies(self, terms: Sequence[str]) -> tuple[int, dict[str, int]]:
        """The number of chunks, and for each known term in how many of them it stands."""
        with self._database.read() as connection:
            known = self._frequencies
            generation = generation_of(connection)
            if known.generation != generation or len(known.counts) > MAX_KNOWN_TERMS:
                total = int(connection.execute("SELECT count(*) FROM chunks").fetchone()[0])
                known = self._frequencies = _Frequencies(generation, total, {})
            unknown = [term for term in terms if term not in known.counts]
            counted = frequencies_of(connection, unknown)
            known.counts.update({**dict.fromkeys(unknown, 0), **counted})
        return known.total, {t: known.counts[t] for t in terms if known.counts[t]}
