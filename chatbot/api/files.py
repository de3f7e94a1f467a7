"""The files of one person as OpenAI lists them, over the library. Knows no HTTP.

The id of a file is that of its name: a file that is sent again under the same name takes the place
of the earlier one, as on the page. Of a ZIP archive the files are listed; its own id stands for all
of them. What could not be read is known until the program ends; what is waiting to be read is read
by the next one.
"""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from pathlib import Path

from chatbot.api.errors import ApiError
from chatbot.api.file_records import (
    FileInfo,
    archive_file,
    file_id,
    is_file,
    stands_for,
    stored_file,
)
from chatbot.api.given import ALL_FILES
from chatbot.api.waiting import WaitingFile, WaitingFiles
from chatbot.store import Store
from retrieval.load import document_name
from retrieval.pipeline import Library
from retrieval.types import DocumentInfo, IngestReport, RetrievalError
from retrieval.unpack import is_archive

FILE_IDS = "metadata.file_ids"
MAX_WAITING = 64
"""Files of one person that may wait to be read."""
MAX_FAILED = 256
"""Files of one person that could not be read and are still told of."""
MAX_BEGUN = 3
"""A file at which the program ended so often may be why it ended."""
ENDS_PROGRAM = "The program ended each time it read this file; send a smaller one, or parts of it."
log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Job:
    info: FileInfo
    file: WaitingFile
    cancel: threading.Event = field(default_factory=threading.Event)


class Shelf:
    """The files of one person. Safe to use from many threads; `readers` read them."""

    def __init__(
        self, library: Library, store: Store, readers: Executor, waiting: WaitingFiles
    ) -> None:
        self._library = library
        self._store = store
        self._readers = readers
        self._waiting = waiting
        self._lock = threading.Lock()
        self._is_closing = False
        self._jobs: OrderedDict[str, _Job] = OrderedDict()

    @property
    def is_full(self) -> bool:
        """Whether too many files wait to be read."""
        with self._lock:
            waiting = sum(job.info.status == "uploaded" for job in self._jobs.values())
        return waiting >= MAX_WAITING

    def add(self, file: WaitingFile) -> FileInfo:
        """Read a file in the background; it is the shelf's from now on and dropped when read."""
        name = document_name(file.name)
        job = _Job(FileInfo(file_id(name), name, file.n_bytes, int(file.since), "uploaded"), file)
        with self._lock:
            before = self._jobs.pop(job.info.id, None)
            self._jobs[job.info.id] = job
        if before is not None:
            self._give_up(before)
        if file.begun >= MAX_BEGUN:
            self._finish(job, ENDS_PROGRAM)
            self._waiting.drop(file)
        else:
            self._readers.submit(self._read, job)
        return job.info

    def all(self) -> list[FileInfo]:
        """All files, oldest first."""
        with self._lock:
            jobs = {name: job.info for name, job in self._jobs.items()}
        stored = self._stored(self._library.documents())
        found = {info.id: info for info in stored} | jobs
        return sorted(found.values(), key=lambda info: (info.created, info.id))

    def get(self, wanted: str) -> FileInfo:
        """Raises ApiError (404) for a file that is not there."""
        with self._lock:
            job = self._jobs.get(wanted)
        if job is not None:
            return job.info
        documents = self._behind(wanted)
        if not documents:
            raise _not_found(wanted)
        if is_file(documents[0], wanted):
            return self._stored(documents[:1])[0]
        return archive_file(self._stored(documents))

    def _stored(self, documents: Sequence[DocumentInfo]) -> list[FileInfo]:
        """The files of documents; those whose passages are gone are no use."""
        infos = [stored_file(document) for document in documents]
        try:
            lost = self._library.store.lost([document.id for document in documents])
        except RetrievalError:  # a reply says that the place does not answer
            return infos
        return [
            replace(info, status="error", details=lost.sentence)
            if info.document_id in lost.ids
            else info
            for info in infos
        ]

    def _named(self, wanted: str) -> FileInfo:
        """`get` for an id that stands in a request for a reply. Raises ApiError."""
        try:
            return self.get(wanted)
        except ApiError as error:
            raise _not_found(wanted, FILE_IDS) from error

    def delete(self, wanted: str) -> None:
        """Remove a file, also while it is being read. Raises ApiError (404)."""
        with self._lock:
            job = self._jobs.pop(wanted, None)
        if job is not None:
            self._give_up(job)
        documents = self._behind(wanted)
        if job is None and not documents:
            raise _not_found(wanted)
        for document in documents:
            self._remove(document.id)

    def resolve(self, wanted: Sequence[str]) -> tuple[str, ...]:
        """The ids of the documents of files, "all" for those of all. Raises ApiError."""
        documents = self._library.documents()
        if tuple(wanted) == (ALL_FILES,):
            return tuple(document.id for document in documents)
        found: dict[str, None] = {}
        for one in wanted:
            behind = [d.id for d in documents if stands_for(one, d)]
            info = None if behind else self._named(one)
            if info is not None and info.status == "uploaded":
                sentence = f"The file {info.name!r} is still being read; wait for its status."
                raise ApiError(409, sentence, code="file_not_processed", retry_after_s=1.0)
            if info is not None and info.status == "error":
                sentence = f"The file {info.name!r} could not be read: {info.details}"
                raise ApiError(400, sentence, code="file_unreadable", param=FILE_IDS)
            found |= dict.fromkeys(behind or [d.id for d in self._behind(one)])
        return tuple(found)

    def close(self) -> None:
        """Leave what is not read yet to the next program."""
        with self._lock:
            self._is_closing = True
            for job in self._jobs.values():
                job.cancel.set()

    def _read(self, job: _Job) -> None:
        try:
            if job.cancel.is_set():
                return
            job.file = self._waiting.begin(job.file)
            reports = self._reports(job.file.path, job.info.name, job.cancel)
            if self._is_left(job):
                return
            stored = [r.document_id for r in reports if r.status in ("indexed", "unchanged")]
            self._finish(job, None if stored else _problem(reports))
            if job.cancel.is_set() and not self._is_wanted(job):
                for document_id in filter(None, stored):
                    self._remove(document_id)  # deleted just as it was stored
        except RetrievalError as error:
            self._finish(job, str(error))
        except Exception:
            log.exception("A file could not be read by a fault in the program.")
            self._finish(job, "A fault in the program; send the file again.")
        finally:
            if not self._is_left(job):
                self._waiting.drop(job.file)

    def _reports(self, path: Path, name: str, cancel: threading.Event) -> list[IngestReport]:
        if is_archive(path):
            return list(self._library.ingest_archive(path, name=name, cancel=cancel))
        return [self._library.ingest(path, name=name, cancel=cancel)]

    def _finish(self, job: _Job, problem: str | None) -> None:
        with self._lock:
            if self._jobs.get(job.info.id) is not job:
                return
            if problem is None:
                del self._jobs[job.info.id]
                return
            job.info = replace(job.info, status="error", details=problem)
            failed = [name for name, one in self._jobs.items() if one.info.status == "error"]
            for name in failed[:-MAX_FAILED]:
                del self._jobs[name]

    def _give_up(self, job: _Job) -> None:
        """Nobody wants it: also the next program is not to read it."""
        job.cancel.set()
        self._waiting.drop(job.file)

    def _is_left(self, job: _Job) -> bool:
        """Whether the reading of a file ends only since the program does."""
        with self._lock:
            return self._is_closing and self._jobs.get(job.info.id) is job

    def _is_wanted(self, job: _Job) -> bool:
        """Whether a newer file of this name is being read."""
        with self._lock:
            return job.info.id in self._jobs

    def _behind(self, wanted: str) -> list[DocumentInfo]:
        """The documents of an id: one, or those of an archive."""
        return [d for d in self._library.documents() if stands_for(wanted, d)]

    def _remove(self, document_id: str) -> None:
        self._library.delete(document_id)
        self._store.remove_document_everywhere(document_id)


def _problem(reports: Sequence[IngestReport]) -> str:
    """Why nothing of a file can be used."""
    said = next((report.message for report in reports if report.message), "")
    return said or "There is no text in this file."


def _not_found(wanted: str, param: str = "id") -> ApiError:
    return ApiError(404, f"There is no file {wanted[:100]!r}.", code="file_not_found", param=param)
