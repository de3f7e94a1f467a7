"""What is taken back of a request that the model's server refused as wrong. Knows no HTTP."""

from __future__ import annotations

import logging

from chatbot.api.errors import turn_error
from chatbot.attachments import drop_unused
from chatbot.errors import ChatbotError
from chatbot.messages import Conversation, Turn
from chatbot.services import Services
from chatbot.store_sources import ATTACHED
from retrieval.types import RetrievalError

log = logging.getLogger(__name__)


def is_refused(turn: Turn) -> bool:
    """Whether the request itself was wrong, such as too long for the server: then the same request
    never goes, and what it changed would stand in the way of others."""
    error = turn_error(turn)
    return error is not None and error.status < 500 and not turn.reply


def undo(
    services: Services, conversation_id: str, before: Conversation | None, turn: Turn | None
) -> None:
    """Put a conversation back as it was `before` (None: it was not there). `turn` is its newest,
    which goes; None leaves the turns. To be called while the conversation is held."""
    store = services.store
    attached = (
        {str(n.values.get("document")) for n in turn.notices if n.code == ATTACHED} if turn else ()
    )
    try:
        if before is None:
            store.delete(conversation_id)
        else:
            if turn is not None:
                store.drop_turns_from(conversation_id, turn.id)
            store.set_system_text(conversation_id, before.system_text)
            store.set_documents(conversation_id, before.document_ids)
            store.rename(conversation_id, before.title)
        drop_unused(services.library, store, attached)
    except (ChatbotError, RetrievalError) as error:
        log.warning("What a refused request changed could not be taken back: %s", error)
