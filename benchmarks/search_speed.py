"""How fast a large library is searched, opened and filled, and what memory it takes.

Run: python -m benchmarks.search_speed [--chunks 100000] [--open-chunks 20000] [--json]

Chunks are made of real sentences (of the files below --texts) in random order, their vectors are
random: the speed of an exact search does not depend on what the vectors mean. Questions are such
sentences too, embedded by the embedded model. The last line printed is one JSON object: `p95_ms`
and `p50_ms` of a search, `chunks`, `windows`, `bytes_per_chunk` (process memory that the open and
searched index takes, less its vectors), `open_s` (opening a library of --open-chunks chunks up to
its first result), and `ingest_vs_encode` (reading a PDF of 200 pages into the library, over the
time that sentence-transformers alone needs to encode the same windows; processor time).
"""

from __future__ import annotations

import argparse
import gc
import json
import random
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from statistics import median, quantiles
from typing import Any

import numpy as np
import psutil

from chatbot.engine import models
from chatbot.settings import Settings
from retrieval.embed import SentenceTransformerEmbedder, Vectors
from retrieval.index import Entry, Index, Window
from retrieval.pipeline import Library
from retrieval.search import search
from retrieval.types import Chunk, CleanDocument, DocumentInfo, PageSpan
from tests.file_maker import pdf

ROOT = Path(__file__).resolve().parent.parent
TEXTS = ROOT.parent / "shared" / "data" / "qa"
CHUNKS_PER_DOCUMENT = 200
WINDOWS_PER_CHUNK = 4
SENTENCES_PER_CHUNK = 14
N_QUESTIONS = 200
PDF_PAGES, LINES_PER_PAGE = 200, 25


class RandomVectors:
    """Stands for the embedded model where vectors are stored; questions get the model's own."""

    def __init__(self, real: SentenceTransformerEmbedder) -> None:
        self.real = real
        self.name, self.dimensions, self.english_only = "random", real.dimensions, True
        self.max_tokens = real.max_tokens
        self._random = np.random.default_rng(0)

    def rows(self, count: int) -> Vectors:
        made = self._random.standard_normal((count, self.dimensions), dtype=np.float32)
        made /= np.linalg.norm(made, axis=1, keepdims=True)
        return made

    def count_tokens(self, text: str) -> int:
        return self.real.count_tokens(text)

    def embed_documents(self, texts: list[str]) -> Vectors:
        return self.rows(len(texts))

    def embed_query(self, text: str) -> Vectors:
        return self.real.embed_query(text)


def main(argv: Sequence[str] | None = None) -> int:
    """Make the libraries in a temporary folder and print the figures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--chunks", type=int, default=100_000)
    parser.add_argument("--open-chunks", type=int, default=20_000)
    parser.add_argument("--texts", type=Path, default=TEXTS if TEXTS.is_dir() else ROOT)
    parser.add_argument("--json", action="store_true", help="print the JSON line only")
    parser.add_argument("--open", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    sentences = _sentences(options.texts)
    if options.open is not None:
        print(json.dumps(_opened(options.open, sentences)))
        return 0
    with tempfile.TemporaryDirectory() as folder:
        figures = {
            **_searched(Path(folder) / "large", options.chunks, sentences),
            **_opened_elsewhere(Path(folder) / "small", options, sentences),
            "ingest_vs_encode": _ingest_vs_encode(Path(folder), sentences),
        }
    if not options.json:
        for key, value in figures.items():
            print(f"{key:>20}: {value}")
    print(json.dumps(figures))
    return 0


def _sentences(folder: Path) -> list[str]:
    texts = (
        path.read_text(encoding="utf-8", errors="ignore")
        for pattern in ("*.txt", "*.md")
        for path in sorted(folder.rglob(pattern))
        if ".venv" not in path.parts
    )
    found = [
        " ".join(sentence.split())
        for text in texts
        for sentence in re.split(r"(?<=[.!?다])\s+", text)
        if 40 <= len(sentence) <= 300
    ]
    if len(found) < 100:
        raise SystemExit(f"There is too little text below {folder}; choose another --texts.")
    return found


def _fill(folder: Path, n_chunks: int, sentences: list[str]) -> RandomVectors:
    embedder = RandomVectors(_embedder())
    folder.mkdir()
    with closing(Index(folder / "index.db", embedder=embedder.name)) as index:
        for number in range(0, n_chunks, CHUNKS_PER_DOCUMENT):
            count = min(CHUNKS_PER_DOCUMENT, n_chunks - number)
            index.put(*_document(number, count, sentences, embedder))
    return embedder


def _document(
    number: int, n_chunks: int, sentences: list[str], embedder: RandomVectors
) -> tuple[DocumentInfo, CleanDocument, list[Entry]]:
    shuffled = random.Random(number)
    entries, pieces, start = [], [], 0
    for _ in range(n_chunks):
        text = " ".join(shuffled.choices(sentences, k=SENTENCES_PER_CHUNK))
        step = len(text) // WINDOWS_PER_CHUNK
        windows = tuple(
            Window(at * step, (at + 1) * step, row)
            for at, row in enumerate(embedder.rows(WINDOWS_PER_CHUNK))
        )
        entries.append(Entry(Chunk(text, start, start + len(text), len(text) // 4), windows))
        pieces.append(text)
        start += len(text) + 1
    document = CleanDocument(f"{number}.txt", "txt", " ".join(pieces), (PageSpan(None, 0, start),))
    info = DocumentInfo(
        f"{number:016d}", document.name, "txt", 0, n_chunks, start // 4, start, "0", "2026"
    )
    return info, document, entries


def _searched(folder: Path, n_chunks: int, sentences: list[str]) -> dict[str, Any]:
    embedder = _fill(folder, n_chunks, sentences)
    asked = random.Random(1).sample(sentences, min(N_QUESTIONS, len(sentences)))
    embedder.embed_query(asked[0])
    gc.collect()
    before = psutil.Process().memory_info().rss
    with closing(Index(folder / "index.db", embedder=embedder.name)) as index:
        search(index, embedder, asked[0])
        taken_s = []
        for question in asked:
            begin = time.perf_counter()
            assert search(index, embedder, question[:120]).ranked
            taken_s.append(time.perf_counter() - begin)
        gc.collect()
        grown = psutil.Process().memory_info().rss - before
        counts = index.counts()
    vector_bytes = counts["vectors"] * embedder.dimensions * 4
    return {
        "chunks": counts["chunks"],
        "windows": counts["windows"],
        "p50_ms": round(1000 * median(taken_s), 1),
        "p95_ms": round(1000 * quantiles(taken_s, n=20)[-1], 1),
        "bytes_per_chunk": round(max(0, grown - vector_bytes) / counts["chunks"]),
    }


def _opened_elsewhere(
    folder: Path, options: argparse.Namespace, sentences: list[str]
) -> dict[str, Any]:
    """In a process of its own, so that nothing is warm but the file system."""
    _fill(folder, options.open_chunks, sentences)
    command = [sys.executable, "-m", "benchmarks.search_speed", "--open", str(folder)]
    done = subprocess.run(
        [*command, "--texts", str(options.texts)], capture_output=True, text=True, check=True
    )
    figures: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return figures


def _opened(folder: Path, sentences: list[str]) -> dict[str, Any]:
    embedder = RandomVectors(_embedder())
    embedder.embed_query("warm")
    begin = time.perf_counter()
    with closing(Library(folder, embedder=embedder, count_tokens=len)) as library:
        ready_s = time.perf_counter() - begin
        assert library.search(sentences[0])
        return {
            "open_s": round(time.perf_counter() - begin, 3),
            "open_without_search_s": round(ready_s, 3),
        }


def _ingest_vs_encode(folder: Path, sentences: list[str]) -> float:
    embedder = _embedder()
    embedder.embed_query("warm")  # the model is loaded once, whoever encodes with it
    path = folder / "long.pdf"
    path.write_bytes(pdf(list(_pages(sentences))))
    ratios = []
    for number in range(2):
        with closing(
            Library(folder / f"pdf{number}", embedder=embedder, count_tokens=_rough)
        ) as library:
            begin = _all_processes_s()
            report = library.ingest(path)
            ingest_s = _all_processes_s() - begin
            assert report.status == "indexed", report.message
            texts = _window_texts(library, report.document_id or "")
        begin = _all_processes_s()
        for at in range(0, len(texts), 32):
            embedder.embed_documents(texts[at : at + 32])
        ratios.append(ingest_s / (_all_processes_s() - begin))
    return round(median(ratios), 3)


def _window_texts(library: Library, document_id: str) -> list[str]:
    from retrieval.windows import window_text, windows_of

    chunks = library.chunks(document_id)
    spans = windows_of(chunks, _embedder())
    return [window_text(chunks[number], start, end) for number, start, end in spans]


def _pages(sentences: list[str]) -> Iterator[list[str]]:
    chosen = random.Random(2)
    for number in range(PDF_PAGES):
        words = " ".join(chosen.choices(sentences, k=30)).split(" ")
        lines = [" ".join(words[at : at + 12]) for at in range(0, len(words), 12)]
        yield ["A report on many things", *lines[:LINES_PER_PAGE], str(number + 1)]


def _rough(text: str) -> int:
    return len(text) // 4 + 1


def _all_processes_s() -> float:
    """Processor time of this process and of the parsers that it started."""
    times = psutil.Process().cpu_times()
    return float(times.user + times.system + times.children_user + times.children_system)


def _embedder() -> SentenceTransformerEmbedder:
    settings = Settings()
    return SentenceTransformerEmbedder(
        models.locate_embedder("embedded", cache_dir=settings.cache_dir)
    )


if __name__ == "__main__":
    raise SystemExit(main())
