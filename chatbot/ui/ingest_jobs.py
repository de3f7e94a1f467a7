"""Reads uploaded files in the background and remembers how far each is. Knows no widget.

The work goes on when its tab is closed; the document is then there at the next visit.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from chatbot.errors import InputError
from chatbot.store import Store
from chatbot.ui.inbox import Waiting
from retrieval.pipeline import IngestProgress, Library
from retrieval.types import IngestReport
from retrieval.unpack import is_archive

JobState = Literal["waiting", "load", "chunk", "embed", "store", "note", "error"]
_STATES: dict[str, JobState] = {"load": "load", "chunk": "chunk", "embed": "embed"}


@dataclass(frozen=True, slots=True)
class JobRow:
    """One file on its way. `fraction` is in [0, 1].

    `message` is the sentence of an error, or of a note about a file that was taken all the same.
    """

    id: str
    name: str
    state: JobState = "waiting"
    fraction: float | None = None
    message: str = ""

    @property
    def is_over(self) -> bool:
        """Whether the row only stays to be read."""
        return self.state in ("note", "error")


class IngestJobs:
    """Owns the thread that reads files, one after another, and the rows that tell about them."""

    def __init__(self, library: Library, store: Store) -> None:
        self._library = library
        self._store = store
        self._rows: dict[str, dict[str, JobRow]] = {}
        self._changed = threading.Condition()
        self._cancel = threading.Event()
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="ingest")

    def start(self, conversation_id: str, files: Sequence[Waiting]) -> None:
        """Read files that nobody else owns any more and let the chat use them."""
        for file in files:
            row = JobRow(secrets.token_hex(8), file.name)
            self._put(conversation_id, row)
            self._worker.submit(self._read, conversation_id, row, file)

    def reject(self, conversation_id: str, name: str, message: str) -> None:
        """Show a file that did not come in, with the reason."""
        self._put(conversation_id, JobRow(secrets.token_hex(8), name, "error", message=message))

    def rows(self, conversation_id: str) -> tuple[JobRow, ...]:
        """The files of a chat that are being read or could not be read, oldest first."""
        with self._changed:
            return tuple(self._rows.get(conversation_id, {}).values())

    def reading(self, conversation_id: str) -> str:
        """The name of a file of this chat that is not read yet; "" if there is none."""
        waiting = (row.name for row in self.rows(conversation_id) if not row.is_over)
        return next(waiting, "")

    def wait(self, conversation_id: str, seen: tuple[JobRow, ...], timeout_s: float) -> bool:
        """Wait until the rows differ from `seen`; False when the time is up first."""
        with self._changed:
            return self._changed.wait_for(
                lambda: tuple(self._rows.get(conversation_id, {}).values()) != seen, timeout_s
            )

    def dismiss(self, conversation_id: str, job_id: str) -> None:
        """Remove the row of an error or a note."""
        with self._changed:
            row = self._rows.get(conversation_id, {}).get(job_id)
            if row and row.is_over:
                self._drop(conversation_id, job_id)

    def use(self, conversation_id: str, document_id: str, *, on: bool) -> None:
        """Let questions of this chat use a document, or not. Raises InputError for no chat."""
        with self._changed:
            ids = list(self._store.load(conversation_id).document_ids)
            if on and document_id not in ids:
                self._store.set_documents(conversation_id, [*ids, document_id])
            elif not on and document_id in ids:
                ids.remove(document_id)
                self._store.set_documents(conversation_id, ids)

    def use_all(self, conversation_id: str) -> None:
        """Let questions of this chat use every document. Raises InputError for no chat."""
        with self._changed:
            ids = list(self._store.load(conversation_id).document_ids)
            others = [info.id for info in self._library.documents() if info.id not in ids]
            self._store.set_documents(conversation_id, [*ids, *others])

    def close(self) -> None:
        """Give up what is not read yet and wait for the file at hand."""
        self._cancel.set()
        self._worker.shutdown(wait=True, cancel_futures=True)

    def _read(self, conversation_id: str, row: JobRow, file: Waiting) -> None:
        """Read a file, or the files of an archive, each of which then has what a file has."""
        try:
            for report in self._reports(conversation_id, row, file):
                self._settle(conversation_id, row, report)
        except InputError:
            pass  # the chat was deleted meanwhile; its documents stay in the library
        except BaseException as error:
            self._put(conversation_id, replace(row, state="error", message=str(error)))
            raise
        finally:
            file.path.unlink(missing_ok=True)
        with self._changed:
            if not self._rows.get(conversation_id, {}).get(row.id, row).is_over:
                self._drop(conversation_id, row.id)

    def _reports(self, conversation_id: str, row: JobRow, file: Waiting) -> Iterator[IngestReport]:
        def progress(step: IngestProgress) -> None:
            share = step.done / step.total if step.stage == "embed" and step.total else None
            state = _STATES.get(step.stage, "store")
            self._put(conversation_id, replace(row, name=step.file, state=state, fraction=share))

        if is_archive(Path(file.name)):
            yield from self._library.ingest_archive(
                file.path, name=file.name, progress=progress, cancel=self._cancel
            )
        else:
            yield self._library.ingest(
                file.path, name=file.name, progress=progress, cancel=self._cancel
            )

    def _settle(self, conversation_id: str, row: JobRow, report: IngestReport) -> None:
        """Let the chat use a document; what is to be said about a file stays as a row."""
        taken = report.document_id and report.status in ("indexed", "unchanged")
        if report.document_id and taken:
            self.use(conversation_id, report.document_id, on=True)
        message = _beside_document(report) if taken else report.message
        if not taken or (report.status == "indexed" and message):
            own = row.id if report.file == row.name else secrets.token_hex(8)
            state: JobState = "note" if taken else "error"
            self._put(conversation_id, JobRow(own, report.file, state, message=message))

    def _put(self, conversation_id: str, row: JobRow) -> None:
        with self._changed:
            self._rows.setdefault(conversation_id, {})[row.id] = row
            self._changed.notify_all()

    def _drop(self, conversation_id: str, job_id: str) -> None:
        rows = self._rows.get(conversation_id, {})
        rows.pop(job_id, None)
        if not rows:
            self._rows.pop(conversation_id, None)
        self._changed.notify_all()


def _beside_document(report: IngestReport) -> str:
    """What is to be said of a file that was taken, but for the warnings that its document shows."""
    message = report.message
    for warning in report.warnings:
        message = message.replace(warning, "")
    return " ".join(message.split())
