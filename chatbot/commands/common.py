"""What several commands do alike: arguments, documents from paths, waiting for the model."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from chatbot.console import Console
from chatbot.engine.base import Engine
from chatbot.errors import ChatbotError, InputError, ModelError
from chatbot.records import to_plain
from chatbot.settings import Settings
from retrieval.embed import SentenceTransformerEmbedder
from retrieval.pipeline import IngestProgress, Library
from retrieval.types import IngestReport, ModelUnusableError, RetrievalError

_POLL_S = 0.1


def add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON, one object per line")


def add_documents(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--documents",
        nargs="+",
        type=Path,
        default=[],
        metavar="PATH",
        help="files and folders to answer from; read anew each time, and not kept",
    )


def checked_text(text: str, what: str) -> str:
    """A text from the command line. Raises InputError when it is empty or not valid Unicode.

    Where the locale is not UTF-8, Python hands over its bytes in disguise: they are read again.
    """
    if not text.strip():
        raise InputError(f"{what} is empty; write one.")
    try:
        return text.encode("utf-8", "surrogateescape").decode("utf-8")
    except UnicodeError as error:
        raise InputError(f"{what} is not valid UTF-8; check the terminal's encoding.") from error


def check_paths(paths: Sequence[Path]) -> None:
    """Raise InputError for the first path that is not there."""
    for missing in split_missing(paths)[1]:
        raise InputError(missing.text)


@dataclass(frozen=True, slots=True)
class Missing:
    """A path that is not there, and the sentence for it."""

    path: Path
    text: str


def split_missing(paths: Sequence[Path]) -> tuple[list[Path], list[Missing]]:
    """The paths that are there, and those that are not."""
    there = [path for path in paths if path.exists()]
    return there, [
        Missing(path, f"There is no file or folder {path}; check the path.")
        for path in paths
        if path not in there
    ]


def counted(number: int, noun: str) -> str:
    """ "1 turn", "2 turns"."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def read_documents(library: Library, paths: Sequence[Path], console: Console) -> dict[str, str]:
    """Ingest files and folders; ids by name. What cannot be read is said on stderr.

    Raises ChatbotError when nothing could be read, ModelUnusableError where that is not the
    documents' fault.
    """
    ids: dict[str, str] = {}
    if paths:
        check_embedder(library)
    reports = list(library.ingest_tree(paths, progress=note_progress(console)))
    for report in reports:
        if report.document_id is not None:
            ids[report.file] = report.document_id
        elif report.is_of_model:
            raise ModelUnusableError(report.message)
        if report.message:
            console.note(f"{report.file}: {report.message}")
    if paths and not ids:
        raise ChatbotError("None of the documents could be read; choose others.")
    return ids


def check_embedder(library: Library) -> None:
    """Raise ModelUnusableError before files are read that there is no model for."""
    if isinstance(library.embedder, SentenceTransformerEmbedder):
        library.embedder.check()


def note_progress(console: Console) -> Callable[[IngestProgress], None]:
    """Show how far the reading of a file is."""

    def show(progress: IngestProgress) -> None:
        done = f" {progress.done}/{progress.total}" if progress.total > 1 else ""
        console.progress(f"{progress.file}: {progress.stage}{done}")

    return show


def ingest_record(report: IngestReport) -> dict[str, Any]:
    """A report as its JSON object."""
    keys = ("file", "status", "pages", "chunks", "removed_lines", "message", "removed")
    return {key: to_plain(getattr(report, key)) for key in keys}


def note_demo(settings: Settings, console: Console) -> None:
    """Say that the demo model is one, so that nobody takes its answers for a real model's."""
    if settings.model == "demo" and not settings.engine_url:
        console.note("This is a small English demo model; --model chooses a better one.")


def wait_for_engine(engine: Engine, console: Console) -> None:
    """Wait until the model is there, showing how far it is. Raises ModelError when it failed."""
    while (status := engine.status).state == "loading":
        console.model_progress(status.message, status.progress)
        time.sleep(_POLL_S)
    console.clear_progress()
    if status.state == "failed":
        raise ModelError(status.message)


def note_lost(library: Library, console: Console) -> None:
    """Say which documents the place of documents in use does not hold."""
    try:
        lost = library.store.lost()
    except RetrievalError as error:
        console.note(str(error))
        return
    if lost.ids:
        console.note(lost.sentence)
