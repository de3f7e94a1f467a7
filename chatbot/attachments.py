"""Long messages as documents of the library, and their end. Knows no prompt and no model."""

from __future__ import annotations

import hashlib
import logging
import tempfile
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from chatbot.errors import StoreError
from chatbot.language import detect
from chatbot.messages import Notice
from chatbot.store import Store
from chatbot.store_sources import ATTACHED
from retrieval.pipeline import Library
from retrieval.types import IngestReport, RetrievalError

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Attached:
    """A message as a document, and what the user is told. `is_new`: it was not there before."""

    document_id: str | None = None
    is_new: bool = False
    notices: tuple[Notice, ...] = ()


def attach_message(library: Library, text: str) -> Attached:
    """Make a message that does not fit the prompt a document, which no chat uses yet."""
    name = attachment_name(text)
    report = attach_text(library, text, name)
    if report.document_id is None:
        return Attached(notices=(Notice("attach_failed", report.message),))
    sentence = f"The message is attached as the document {name!r} and searched."
    notice = Notice(ATTACHED, sentence, {"document": name})
    return Attached(report.document_id, report.status == "indexed", (notice,))


def withdraw(library: Library, store: Store, attached: Attached) -> None:
    """Delete what a message became that was refused after all."""
    if attached.document_id is None or not attached.is_new:
        return
    try:
        if store.is_document_used(attached.document_id):
            return  # the same message, in another chat at the same time
    except StoreError:
        pass  # no other chat can have stored it either
    try:
        library.delete(attached.document_id)
    except RetrievalError as error:
        log.warning("The document of a message that was refused stays: %s", error)


def attach_text(library: Library, text: str, name: str) -> IngestReport:
    """Put a text into the library as a document called `name`, as an upload of it would."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "message.txt"
        path.write_text(text, encoding="utf-8", errors="replace")
        return library.ingest(path, name=name)


def attachment_name(text: str) -> str:
    """A name in the language of the text, which the same text gets again, so that asking it twice
    makes one document."""
    digest = hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()
    if detect(text) == "ko":
        return f"긴 메시지 {len(text)}자 ({digest[:6]}).txt"
    return f"Message of {len(text)} characters ({digest[:6]}).txt"


def forget_attached(
    library: Library, store: Store, conversation_id: str, names: Collection[str]
) -> None:
    """Take the documents that forgotten turns were attached as out of their chat, and out of the
    library; not where a turn of another chat was attached as the same one, or one uses it."""
    for info in library.documents() if names else ():
        if info.name in names:
            used = store.load(conversation_id).document_ids
            store.set_documents(conversation_id, [name for name in used if name != info.id])
    drop_unused(library, store, names)


def drop_unused(library: Library | None, store: Store, names: Collection[str]) -> None:
    """Delete documents of these names that no chat uses and no message is attached as any more."""
    if library is None or not names:
        return
    for info in library.documents():
        if info.name not in names or store.is_attached(info.name):
            continue
        if not store.is_document_used(info.id):
            library.delete(info.id)
            store.forget_document(info.id)
