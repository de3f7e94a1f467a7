"""A library from one place to another, and the proof that all of it arrived. Knows no place.

Each document is moved in one step and skipped when it is there already, so a move that was ended,
by whatever, goes on where it was. Nothing is taken from the source.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from retrieval.chunk_store import Entry
from retrieval.exchange import ExchangeStore, Exported
from retrieval.search import N_LEXICAL, N_WINDOWS
from retrieval.types import DocumentInfo, RetrievalError
from retrieval.words import lexical_terms

SAMPLED_DOCUMENTS = 30
SAMPLED_SEARCHES = 50
TOP = 10
MIN_AGREEMENT = 0.99
COSINE_ERROR = 1e-4
Progress = Callable[[str, int, int], None]
"""The name of a document, how many are done, and how many there are."""


@dataclass(frozen=True, slots=True)
class MoveReport:
    """What a move did and what its check found. `faults` are sentences; none: all is there."""

    documents: int = 0
    moved: int = 0
    chunks: int = 0
    windows: int = 0
    searches: int = 0
    agreement: float = 1.0
    """Of the ten best chunks of the sampled searches, the share that both places found."""
    faults: tuple[str, ...] = field(default=())


def move(
    source: ExchangeStore,
    target: ExchangeStore,
    progress: Progress | None = None,
    *,
    replace: bool = False,
) -> int:
    """Bring to `target` the documents of `source` that are not there; how many these were.

    Raises RetrievalError if the source lacks passages, or if the target holds documents that the
    source has not, or others under their names; with `replace`, these are deleted.
    """
    wanted = source.documents()
    if wanted and (lost := source.lost()).ids:
        raise RetrievalError(lost.sentence)
    elsewhere = set(target.lost().ids)
    _make_room(target, wanted, elsewhere, replace=replace)
    there = {info.id for info in target.documents()} - elsewhere
    if any(info.id not in there for info in wanted):
        target.sweep()
    moved = 0
    for number, info in enumerate(wanted, start=1):
        if info.id not in there and (exported := source.export(info.id)) is not None:
            if info.id in elsewhere:
                target.delete(info.id)
            target.adopt(exported)
            moved += 1
        if progress:
            progress(info.name, number, len(wanted))
    return moved


def _make_room(
    target: ExchangeStore, wanted: Sequence[DocumentInfo], elsewhere: set[str], *, replace: bool
) -> None:
    """See that the target holds nothing but what is wanted, or delete the rest of it."""
    strangers = sorted(
        (info for info in target.documents() if info not in wanted), key=lambda info: info.name
    )
    if not strangers:
        return
    if not (replace and wanted):
        raise RetrievalError(_refusal(strangers, elsewhere, is_empty=not wanted))
    for info in strangers:
        target.delete(info.id)


def _refusal(strangers: Sequence[DocumentInfo], elsewhere: set[str], *, is_empty: bool) -> str:
    """Why these documents of the target are in the way, and by which command they go."""
    name, n = strangers[0].name, len(strangers)
    if all(info.id in elsewhere for info in strangers):
        what = (
            f"“{name}” ({n} such documents) is in Milvus at another address, and not in the "
            "library that is to be moved; bring it back first: library move --to local "
            "--vector-url ADDRESS, with the address that has it"
        )
    else:
        what = (
            f"The target holds “{name}”, which is not in the library that is to be moved, or in "
            f"another version ({n} such documents)"
        )
    if is_empty:
        return f"{what}. There is nothing to be moved to it."
    return f"{what}. To delete these documents and move all the same, add --replace-target."


def check(source: ExchangeStore, target: ExchangeStore, *, moved: int = 0) -> MoveReport:
    """Compare both: all documents and chunks, the vectors of some, and what searches find."""
    documents, faults = source.documents(), list[str]()
    if documents != target.documents():
        faults.append("The lists of documents differ; was one changed meanwhile? Move once more.")
    chunks = 0
    for info in documents:
        here, there = source.passages(info.id), target.passages(info.id)
        chunks += len(there)
        if here != there:
            faults.append(f"The chunks of “{info.name}” differ.")
    chance = random.Random(len(documents))
    some = chance.sample(documents, min(SAMPLED_DOCUMENTS, len(documents)))
    samples, windows = _compared(source, target, some, faults)
    agreement, searches = _agreement(source, target, samples, chance)
    if agreement < MIN_AGREEMENT:
        faults.append(f"Searches find the same in only {agreement:.1%} of their results.")
    return MoveReport(
        len(documents), moved, chunks, windows, searches, round(agreement, 4), tuple(faults)
    )


def _compared(
    source: ExchangeStore,
    target: ExchangeStore,
    some: Sequence[DocumentInfo],
    faults: list[str],
) -> tuple[list[Entry], int]:
    """Entries to search by, and how many windows were compared."""
    samples: list[Entry] = []
    windows = 0
    for info in some:
        here, there = source.export(info.id), target.export(info.id)
        if here is None or there is None or not _same(here, there):
            faults.append(f"“{info.name}” or its vectors differ.")
        elif here.entries:
            samples += here.entries
            windows += sum(len(entry.windows) for entry in here.entries)
    return samples, windows


def _same(a: Exported, b: Exported) -> bool:
    same = (a.info, a.document, a.embedder, a.first_chunk) == (
        *(b.info, b.document, b.embedder),
        b.first_chunk,
    )
    return same and len(a.entries) == len(b.entries) and all(map(_same_entry, a.entries, b.entries))


def _same_entry(a: Entry, b: Entry) -> bool:
    if a.chunk != b.chunk or len(a.windows) != len(b.windows):
        return False
    return all(
        (v.start, v.end) == (w.start, w.end)
        and v.vector.shape == w.vector.shape
        and bool((abs(v.vector - w.vector) <= COSINE_ERROR).all())
        for v, w in zip(a.windows, b.windows, strict=True)
    )


def _agreement(
    source: ExchangeStore, target: ExchangeStore, samples: Sequence[Entry], chance: random.Random
) -> tuple[float, int]:
    """The mean share of the best chunks that both find, by words and by vectors."""
    shares = []
    for entry in chance.sample(samples, min(SAMPLED_SEARCHES, len(samples))):
        words = entry.chunk.text.split()
        begin = chance.randrange(max(1, len(words) - 8))
        terms = lexical_terms(" ".join(words[begin : begin + 8]))
        here, there = (place.lexical(terms, N_LEXICAL) for place in (source, target))
        shares.append(_overlap(here, there))
        if entry.windows and source.has_vectors():
            vector = chance.choice(entry.windows).vector
            hits = (place.dense(vector, N_WINDOWS) for place in (source, target))
            shares.append(_overlap(*([hit.chunk_id for hit in found] for found in hits)))
    return (sum(shares) / len(shares) if shares else 1.0), len(shares)


def _overlap(here: Sequence[int], there: Sequence[int]) -> float:
    best, others = (set(list(dict.fromkeys(ids))[:TOP]) for ids in (here, there))
    return len(best & others) / max(1, len(best | others)) if best or others else 1.0
