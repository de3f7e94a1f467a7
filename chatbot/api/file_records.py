"""A file as OpenAI lists it: its id, and what the documents behind it say of it. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from retrieval.load import document_name
from retrieval.types import DocumentInfo
from retrieval.unpack import ARCHIVE_SUFFIXES

Status = Literal["uploaded", "processed", "error"]


@dataclass(frozen=True, slots=True)
class FileInfo:
    """One file. `details` is a sentence on what is wrong with it, or ""; `created` is in Unix
    time."""

    id: str
    name: str
    n_bytes: int
    created: int
    status: Status
    details: str = ""
    document_id: str | None = None


def file_id(name: str) -> str:
    """The id of the file of this name."""
    digest = hashlib.sha256(document_name(name).encode("utf-8", "replace"))
    return f"file-{digest.hexdigest()[:24]}"


def stored_file(document: DocumentInfo) -> FileInfo:
    """The file that a document came as."""
    return FileInfo(
        file_id(document.name),
        document.name,
        document.bytes,
        int(datetime.fromisoformat(document.created).timestamp()),
        "processed",
        " ".join(document.warnings),
        document.id,
    )


def archive_file(of_each: Sequence[FileInfo]) -> FileInfo:
    """The archive that files came in, as a file; an error where one of them is."""
    name = _archive_of(of_each[0].name) or ""
    broken = [info for info in of_each if info.status == "error"]
    details = f"{len(of_each)} files of this archive were read."
    if broken:
        details = f"{len(broken)} of its {len(of_each)} files cannot be used: {broken[0].details}"
    return FileInfo(
        file_id(name),
        name,
        sum(info.n_bytes for info in of_each),
        max(info.created for info in of_each),
        "error" if broken else "processed",
        details,
    )


def is_file(document: DocumentInfo, wanted: str) -> bool:
    """Whether an id is that of the document itself."""
    return file_id(document.name) == wanted


def stands_for(wanted: str, document: DocumentInfo) -> bool:
    """Whether an id is that of the document, or of the archive that it came in."""
    archive = _archive_of(document.name)
    return is_file(document, wanted) or (archive is not None and file_id(archive) == wanted)


def _archive_of(name: str) -> str | None:
    """The name of the archive that a file came in; its files are named by it and their path."""
    for suffix in ARCHIVE_SUFFIXES:
        place = name.lower().find(f"{suffix}/")
        if place > 0:
            return name[: place + len(suffix)]
    return None
