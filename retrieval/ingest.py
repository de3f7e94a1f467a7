"""Files into the index: read, clean, chunk, embed, store, with progress and cancel. Knows no
query."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from retrieval.chunk import chunk
from retrieval.chunk_store import ChunkStore, Entry, Window
from retrieval.claims import Claim, Claims
from retrieval.clean import clean
from retrieval.embed import Embedder
from retrieval.files import Originals, digest
from retrieval.ingest_reports import empty_message, failed, info_of, report_of
from retrieval.ingest_rules import IngestProgress, IngestRules, Report
from retrieval.load import check_file, document_name, load_file
from retrieval.types import (
    Chunk,
    CleanDocument,
    DocumentInfo,
    IndexAwayError,
    IngestReport,
    RetrievalError,
)
from retrieval.windows import window_text, windows_of

BATCH_WINDOWS = 256
"""Many small files are embedded together, up to this many windows."""
BATCH_FILES = 64
STEP_WINDOWS = 32
"""Windows between two looks at the cancel flag."""
CLAIM_STEP_S = 0.25
"""Between two looks whether another process is done with a file."""
_COSTS_ONE_FILE = (RetrievalError, OSError, sqlite3.Error, UnicodeError)


class Cancelled(RetrievalError):
    """The user stopped adding a file."""


@dataclass(frozen=True, slots=True)
class _Looked:
    """A file of which the library may need another version."""

    name: str
    sha256: str
    n_bytes: int


@dataclass(frozen=True, slots=True)
class _Prepared:
    """A file that is read and cut, and waits for its vectors."""

    path: Path
    info: DocumentInfo
    document: CleanDocument
    chunks: tuple[Chunk, ...]
    windows: tuple[tuple[int, int, int], ...]
    """(chunk number, start, end in the chunk's text)."""

    def texts(self) -> list[str]:
        return [window_text(self.chunks[n], start, end) for n, start, end in self.windows]


class Ingestor:
    """Takes files through all stages for one call of the library."""

    def __init__(
        self,
        index: ChunkStore,
        originals: Originals,
        embedder: Embedder | None,
        rules: IngestRules,
        *,
        progress: Report | None = None,
        cancel: threading.Event | None = None,
        claim: Claim | None = None,
    ) -> None:
        """`claim` keeps processes apart that get the same file at the same time."""
        self._claims = Claims(claim)
        self._index = index
        self._originals = originals
        self._embedder = embedder
        self._rules = rules
        self._progress = progress
        self._cancel = cancel

    def run(self, files: Sequence[tuple[Path, str]]) -> Iterator[IngestReport]:
        """One report a file, in their order. What is wrong with a file costs only that file."""
        try:
            yield from self._reports(files)
        finally:
            self._claims.close()

    def _reports(self, files: Sequence[tuple[Path, str]]) -> Iterator[IngestReport]:
        waiting: list[_Prepared] = []
        for path, name in ((path, document_name(name)) for path, name in files):
            looked = self._looked_at(path, name)
            if not isinstance(looked, IngestReport) and not self._claims.take(name):
                # Whoever waits for others holds nothing that they may wait for.
                yield from self._finished(waiting)
                waiting = []
                looked = self._waited(name) or self._looked_at(path, name)
            prepared = looked if isinstance(looked, IngestReport) else self._prepared(path, looked)
            if isinstance(prepared, _Prepared):
                waiting.append(prepared)
                n_windows = sum(len(item.windows) for item in waiting)
                if n_windows < BATCH_WINDOWS and len(waiting) < BATCH_FILES:
                    continue
            else:
                self._claims.let_go(name)
            yield from self._finished(waiting)
            waiting = []
            if isinstance(prepared, IngestReport):
                yield prepared
        yield from self._finished(waiting)

    def _waited(self, name: str) -> IngestReport | None:
        """Wait until nobody else takes this file in, and claim it; a report if that is given up."""
        try:
            while not self._claims.take(name):
                self._step(name, "load", 0, 1)
                time.sleep(CLAIM_STEP_S)
        except Cancelled as error:
            return failed(name, error)
        return None

    def _looked_at(self, path: Path, name: str) -> _Looked | IngestReport:
        """What can be known without reading the file as a document."""
        try:
            self._step(name, "load", 0, 1)
            check_file(path, self._rules.limits)
            looked = _Looked(name, *digest(path))
            return self._known(looked) or looked
        except _COSTS_ONE_FILE as error:
            return failed(name, error)

    def _known(self, looked: _Looked) -> IngestReport | None:
        known = self._index.by_name(looked.name)
        if known is None or known.sha256 != looked.sha256 or self._is_lost(known.id):
            return None
        return report_of(known, "unchanged", "This file is already in the library.")

    def _is_lost(self, document_id: str) -> bool:
        """Whether a document must be read anew, since its passages are gone."""
        try:
            return bool(self._index.lost([document_id]).ids)
        except IndexAwayError:
            return False

    def _prepared(self, path: Path, looked: _Looked) -> _Prepared | IngestReport:
        name = looked.name
        try:
            # Another process may have been done with it just before it was claimed here.
            known = self._known(looked)
            if known is not None:
                return known
            loaded = load_file(path, self._rules.limits, cancel=self._cancel)
            self._step(name, "chunk", 0, 1)
            document = clean(
                replace(loaded, name=name), remove_running=self._rules.remove_running_lines
            )
            chunks = chunk(
                document,
                count_tokens=self._rules.count_tokens,
                min_tokens=self._rules.chunk_min_tokens,
                max_tokens=self._rules.chunk_max_tokens,
            )
            info = info_of(document, chunks, looked.sha256, looked.n_bytes)
            if not chunks:
                return report_of(replace(info, id=""), "empty", empty_message(document))
            windows = windows_of(chunks, self._embedder)
        except _COSTS_ONE_FILE as error:
            return failed(name, error)
        return _Prepared(path, info, document, tuple(chunks), windows)

    def _finished(self, waiting: Sequence[_Prepared]) -> Iterator[IngestReport]:
        """Embed the windows of all waiting files together, and store each file by itself."""
        if not waiting:
            return
        try:
            windows = iter(self._embedded(waiting))
        except RetrievalError as error:
            if len(waiting) == 1 or isinstance(error, Cancelled):
                for item in waiting:
                    self._claims.let_go(item.info.name)
                    yield failed(item.info.name, error)
                return
            for item in waiting:  # to find the one that cannot be embedded
                yield from self._finished([item])
            return
        for item in waiting:
            report = self._stored(item, [next(windows) for _ in item.windows])
            self._claims.let_go(item.info.name)
            yield report

    def _embedded(self, waiting: Sequence[_Prepared]) -> list[Window]:
        spans = [span for item in waiting for span in item.windows]
        texts = [text for item in waiting for text in item.texts()]
        names = [item.info.name for item in waiting for _ in item.windows]
        made: list[Window] = []
        for begin in range(0, len(texts), STEP_WINDOWS):
            assert self._embedder is not None
            self._step(names[begin], "embed", begin, len(texts))
            vectors = self._embedder.embed_documents(texts[begin : begin + STEP_WINDOWS])
            made.extend(
                Window(start, end, vector)
                for (_, start, end), vector in zip(spans[begin:], vectors, strict=False)
            )
        return made

    def _stored(self, item: _Prepared, windows: Sequence[Window]) -> IngestReport:
        by_chunk: dict[int, list[Window]] = {}
        for (number, _, _), window in zip(item.windows, windows, strict=True):
            by_chunk.setdefault(number, []).append(window)
        entries = [
            Entry(part, tuple(by_chunk.get(number, ()))) for number, part in enumerate(item.chunks)
        ]
        try:
            self._step(item.info.name, "store", 0, 1)
            stored = self._index.put(
                item.info,
                item.document,
                entries,
                also=lambda document_id: self._originals.keep(item.path, document_id),
            )
        except _COSTS_ONE_FILE as error:
            return failed(item.info.name, error)
        replaced = stored.id != item.info.id  # it took over the id of another version
        notes = (f"This replaces the earlier version of “{stored.name}”.",) if replaced else ()
        report = report_of(stored, "indexed", " ".join((*notes, *stored.warnings)))
        return replace(report, removed=item.document.removed)

    def _step(self, name: str, stage: str, done: int, total: int) -> None:
        if self._cancel is not None and self._cancel.is_set():
            raise Cancelled("Adding this file was cancelled.")
        if self._progress is not None:
            self._progress(IngestProgress(name, stage, done, total))
