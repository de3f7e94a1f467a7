"""What a library tells of a file that it took in, or could not. Reads no file."""

from __future__ import annotations

import secrets
import sqlite3
from collections.abc import Sequence
from datetime import UTC, datetime

from retrieval.types import (
    Chunk,
    CleanDocument,
    DocumentInfo,
    IngestReport,
    IngestStatus,
    ModelUnusableError,
    RetrievalError,
)


def info_of(
    document: CleanDocument, chunks: Sequence[Chunk], sha256: str, n_bytes: int
) -> DocumentInfo:
    return DocumentInfo(
        id=secrets.token_hex(8),
        name=document.name,
        media=document.media,
        pages=sum(page.number is not None for page in document.pages),
        chunks=len(chunks),
        tokens=sum(item.tokens for item in chunks),
        bytes=n_bytes,
        sha256=sha256,
        created=datetime.now(UTC).isoformat(timespec="milliseconds"),
        removed_lines=document.removed_lines,
        warnings=document.warnings,
    )


def report_of(info: DocumentInfo, status: IngestStatus, message: str) -> IngestReport:
    return IngestReport(
        file=info.name,
        status=status,
        pages=info.pages,
        chunks=info.chunks,
        removed_lines=info.removed_lines,
        message=message,
        document_id=info.id or None,
        tokens=info.tokens,
        warnings=info.warnings,
    )


def failed(
    name: str, error: RetrievalError | OSError | sqlite3.Error | UnicodeError
) -> IngestReport:
    message = str(error)
    if isinstance(error, OSError):
        message = f"This file cannot be read or kept ({error.strerror or error})."
    elif isinstance(error, sqlite3.Error):
        message = f"The document index cannot be used ({error})."
    elif isinstance(error, UnicodeError):
        message = "This file holds characters that cannot be stored; save it anew as UTF-8."
    is_of_model = isinstance(error, ModelUnusableError)
    return IngestReport(name, "error", message=message, is_of_model=is_of_model)


def empty_message(document: CleanDocument) -> str:
    reasons = " ".join(document.warnings)
    return reasons or "No text was found in this file, so there is nothing to search."
