"""Long messages as documents of the library, and their end. Knows no prompt and no model."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

from chatbot.language import detect
from chatbot.messages import Conversation, Notice
from chatbot.store import Store
from chatbot.store_sources import ATTACHED
from retrieval.pipeline import Library
from retrieval.types import IngestReport


def attach_message(
    library: Library, store: Store, conversation: Conversation, text: str
) -> tuple[Conversation, tuple[Notice, ...]]:
    """Attach a message that does not fit the prompt to its chat; the chat then, and what the user
    is told."""
    name = attachment_name(text)
    report = attach_text(library, text, name)
    if report.document_id is None:
        return conversation, (Notice("attach_failed", report.message),)
    ids = tuple(dict.fromkeys((*conversation.document_ids, report.document_id)))
    store.set_documents(conversation.id, ids)
    sentence = f"The message is attached as the document {name!r} and searched."
    notice = Notice(ATTACHED, sentence, {"document": name})
    return replace(conversation, document_ids=ids), (notice,)


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
