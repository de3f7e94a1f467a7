"""Whether a library finds the same in Milvus as in its folder, and how fast.

Run: python -m benchmarks.vector_agreement [--chunks 20000] [--queries 500] [--url URL] [--json]

A local library of real sentences in random order (of the files below --texts), English and Korean,
is filled, moved to Milvus by the program's own move, and checked by it. Vectors are bags of hashed
words in 384 dimensions, so that they have something to do with the questions: agreement asks
whether both places order alike, not whether the order is good. Then questions are put to both. The
last line printed is one JSON object: `agreement` (mean share of the local top 10 that Milvus has in
its top 10), `identical` (share of questions with the same ten in the same order), `lost_chunks`,
`move_s`, `local_p50_ms`, `milvus_p50_ms`, `milvus_p95_ms`. Without --url, milvus-lite serves a
file; it is written in Python and much slower than a server.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import tempfile
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from benchmarks.search_speed import TEXTS, _sentences
from retrieval.chunk_store import Entry, SearchedStore, Window
from retrieval.embed import ScriptedEmbedder
from retrieval.index import Index
from retrieval.milvus_exchange import MovableMilvus
from retrieval.milvus_place import MilvusPlace
from retrieval.move import check, move
from retrieval.search import search
from retrieval.types import Chunk, CleanDocument, DocumentInfo, PageSpan

ROOT = Path(__file__).resolve().parent.parent
CHUNKS_PER_DOCUMENT = 200
SENTENCES_PER_CHUNK = 12
WINDOWS_PER_CHUNK = 4
TOP = 10


def main(argv: Sequence[str] | None = None) -> int:
    """Fill, move, ask both, and print the figures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--chunks", type=int, default=20_000)
    parser.add_argument("--queries", type=int, default=500)
    parser.add_argument("--texts", type=Path, default=TEXTS if TEXTS.is_dir() else ROOT)
    parser.add_argument("--url", help="a Milvus server; default: a file of milvus-lite")
    parser.add_argument("--json", action="store_true", help="print the JSON line only")
    options = parser.parse_args(argv)
    sentences = _sentences(options.texts)
    embedder = ScriptedEmbedder(dimensions=384)
    with tempfile.TemporaryDirectory() as folder:
        place = MilvusPlace(
            options.url or str(Path(folder) / "milvus.db"), Path(folder) / "catalogue.db"
        )
        with (
            closing(Index(Path(folder) / "index.db", embedder=embedder.name)) as local,
            closing(MovableMilvus(place, embedder=embedder.name)) as milvus,
        ):
            _fill(local, options.chunks, sentences, embedder)
            begin = time.perf_counter()
            moved = move(local, milvus)
            move_s = time.perf_counter() - begin
            report = check(local, milvus, moved=moved)
            figures = {
                "chunks": report.chunks,
                "lost_chunks": options.chunks - report.chunks,
                "faults": len(report.faults),
                "move_s": round(move_s, 1),
                "check_s": round(time.perf_counter() - begin - move_s, 1),
                **_asked(local, milvus, embedder, _questions(options.queries, sentences)),
            }
    if not options.json:
        for key, value in figures.items():
            print(f"{key:>16}: {value}")
    print(json.dumps(figures))
    return 0


def _questions(count: int, sentences: list[str]) -> list[str]:
    """Parts of sentences, half of them Korean where there are enough."""
    chance = random.Random(1)
    korean = [sentence for sentence in sentences if re.search("[가-힣]{2}", sentence)]
    other = [sentence for sentence in sentences if not re.search("[가-힣]", sentence)]
    n_korean = min(count // 2, len(korean))
    chosen = chance.sample(korean, n_korean) + chance.choices(other, k=count - n_korean)
    parts = []
    for sentence in chosen:
        words = sentence.split()
        begin = chance.randrange(max(1, len(words) - 8))
        parts.append(" ".join(words[begin : begin + chance.randint(3, 10)]))
    return parts


def _fill(index: Index, n_chunks: int, sentences: list[str], embedder: ScriptedEmbedder) -> None:
    for number in range(0, n_chunks, CHUNKS_PER_DOCUMENT):
        chance = random.Random(number)
        entries: list[Entry] = []
        pieces: list[str] = []
        start = 0
        for _ in range(min(CHUNKS_PER_DOCUMENT, n_chunks - number)):
            text = " ".join(chance.choices(sentences, k=SENTENCES_PER_CHUNK))
            step = len(text) // WINDOWS_PER_CHUNK
            spans = [(at * step, (at + 1) * step) for at in range(WINDOWS_PER_CHUNK)]
            rows = embedder.embed_documents([text[a:b] for a, b in spans])
            windows = tuple(Window(*span, row) for span, row in zip(spans, rows, strict=True))
            entries.append(Entry(Chunk(text, start, start + len(text), len(text) // 4), windows))
            pieces.append(text)
            start += len(text) + 1
        name = f"{number}.txt"
        document = CleanDocument(name, "txt", " ".join(pieces), (PageSpan(None, 0, start),))
        n_bytes = len(document.text.encode())
        numbers = (0, len(entries), start // 4, n_bytes)
        info = DocumentInfo(f"{number:016d}", name, "txt", *numbers, "0", f"{number:08d}")
        index.put(info, document, entries)


def _asked(
    local: SearchedStore, milvus: SearchedStore, embedder: ScriptedEmbedder, questions: list[str]
) -> dict[str, Any]:
    shares: list[float] = []
    same = 0
    taken: dict[str, list[float]] = {"local": [], "milvus": []}
    for question in questions:
        tops = []
        for name, place in (("local", local), ("milvus", milvus)):
            begin = time.perf_counter()
            found = search(place, embedder, question).ranked[:TOP]
            taken[name].append(1000 * (time.perf_counter() - begin))
            tops.append([item.passage.chunk_id for item in found])
        shares.append(len(set(tops[0]) & set(tops[1])) / len(tops[0]) if tops[0] else 1.0)
        same += tops[0] == tops[1]
    return {
        "queries": len(questions),
        "agreement": round(sum(shares) / len(shares), 4),
        "identical": round(same / len(questions), 4),
        "local_p50_ms": round(median(taken["local"]), 1),
        "milvus_p50_ms": round(median(taken["milvus"]), 1),
        "milvus_p95_ms": round(quantiles(taken["milvus"], n=20)[-1], 1),
    }


if __name__ == "__main__":
    raise SystemExit(main())
