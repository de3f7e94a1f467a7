"""What travels between the retrieval stages: frozen data and the errors. Knows no stage."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

CountTokens = Callable[[str], int]
IngestStatus = Literal["indexed", "unchanged", "empty", "error"]


def passage_body(context: str, text: str) -> str:
    """How a chunk stands in a prompt: its context on lines of its own, then its text."""
    return f"{context}\n{text}" if context else text


class RetrievalError(Exception):
    """A sentence for the user about a document or an index."""


class LoadError(RetrievalError):
    """A file cannot be read: damaged, protected, too large, of an unknown format, or too slow."""


class IndexMismatchError(RetrievalError):
    """An index was made by another embedding model than the one in use."""


class IndexAwayError(RetrievalError):
    """The place of the documents does not answer for now; what it holds is safe."""


class ModelUnusableError(RetrievalError):
    """A model for vectors or for ranking cannot be had: nothing is wrong with any document."""


@dataclass(frozen=True, slots=True)
class Page:
    """One page (sheet, slide) as a loader gives it. `number` counts from 1; None: no pages."""

    number: int | None
    text: str
    label: str | None = None
    """The printed page number, or the name of the sheet, if there is one."""


@dataclass(frozen=True, slots=True)
class LoadedFile:
    """A parsed file before cleaning. `warnings` are sentences for the user."""

    name: str
    media: str
    """Short format name: txt, md, pdf, docx, html, csv."""
    pages: tuple[Page, ...]
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PageSpan:
    """Where a page lies in `CleanDocument.text`: [start, end) in characters."""

    number: int | None
    start: int
    end: int
    label: str | None = None


@dataclass(frozen=True, slots=True)
class CleanDocument:
    """One text for the whole file. All offsets of chunks, passages and citations refer to it.

    For text formats that need no cleaning, it is the decoded file, character for character
    (line ends as `\\n`), so that offsets are those in the file.
    """

    name: str
    media: str
    text: str
    pages: tuple[PageSpan, ...]
    removed_lines: int = 0
    """Running headers and footers that were taken out."""
    warnings: tuple[str, ...] = ()
    removed: tuple[tuple[str, int], ...] = ()
    """What these lines were, one of each kind as it stood, and how many there were."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """A part of a document that goes into a prompt whole or not at all.

    `text == document.text[start:end]`; `context` is what the reader of the chunk alone would
    miss: its heading path or the header row of its table ("" when there is none).
    `page` and `page_end` are 1-based sheet numbers, None for formats without pages.
    """

    text: str
    start: int
    end: int
    tokens: int
    page: int | None = None
    page_end: int | None = None
    context: str = ""


@dataclass(frozen=True, slots=True)
class DocumentInfo:
    """A document of the library, as lists show it. `id` is stable, never reused."""

    id: str
    name: str
    media: str
    pages: int
    chunks: int
    tokens: int
    bytes: int
    sha256: str
    created: str
    removed_lines: int = 0
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Lost:
    """Ids of documents that are listed, but whose passages are not where they should be, and a
    sentence for the user on them ("" when there are none)."""

    ids: tuple[str, ...] = ()
    sentence: str = ""


@dataclass(frozen=True, slots=True)
class Passage:
    """A chunk that was found for a query. `score` is in [0, 1], comparable within one query."""

    chunk_id: int
    document_id: str
    document: str
    text: str
    start: int
    end: int
    tokens: int
    score: float
    page: int | None = None
    page_end: int | None = None
    context: str = ""


def passage_line(label: str, passage: Passage) -> str:
    """The line over a passage in a prompt: its label, document and page.

    The name is put on one line, so that it cannot pose as a passage of its own.
    """
    pages = page_range(passage.page, passage.page_end)
    where = f", p. {pages}" if pages else ""
    return f"[{label}] {' '.join(passage.document.split())}{where}"


def page_range(page: int | None, page_end: int | None) -> str:
    """ "3", "6-7", or "" for a document without pages."""
    if page is None:
        return ""
    return str(page) if page_end in (None, page) else f"{page}-{page_end}"


def passage_in_prompt(label: str, passage: Passage) -> str:
    """A passage as a prompt shows it; the budget counts just this."""
    body = passage_body(passage.context, passage.text)
    return f"{passage_line(label, passage)}\n{body}\n\n"


@dataclass(frozen=True, slots=True)
class Citation:
    """Where a statement of a reply stands: `quote == document text[start:end]`, word for word."""

    label: str
    document: str
    document_id: str
    page: int | None
    start: int
    end: int
    quote: str
    page_end: int | None = None


@dataclass(frozen=True, slots=True)
class IngestReport:
    """What became of one file. `message` is one sentence for the user ("" when all is well)."""

    file: str
    status: IngestStatus
    pages: int = 0
    chunks: int = 0
    removed_lines: int = 0
    message: str = ""
    document_id: str | None = None
    tokens: int = 0
    warnings: tuple[str, ...] = field(default=())
    removed: tuple[tuple[str, int], ...] = ()
    """Running lines that were taken out: one of each kind, and how many there were."""
    is_of_model: bool = False
    """Whether the fault is the embedding model's, so that no other file would do better."""
