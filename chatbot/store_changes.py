"""What changes in a conversation with a question: stored in the transaction of the question, so
that a question which is refused has changed nothing. Begins no transaction."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError

from chatbot import store_queries
from chatbot.errors import IdTakenError, InputError
from chatbot.messages import Conversation
from chatbot.records import now_text, storable
from chatbot.store_rows import check_id, imported
from chatbot.store_schema import conversations

BEING_CHANGED = "This conversation is being changed elsewhere; try again in a moment."
"""The sentence of `chatbot.busy`, as another process may be the one that changes it."""


@dataclass(frozen=True, slots=True)
class Changes:
    """`new` begins with the question, its ids fresh. None in the others: nothing changes."""

    new: Conversation | None = None
    system_text: str | None = None
    """"" goes back to the default."""
    document_ids: tuple[str, ...] | None = None
    attached: str | None = None
    """The id of a document beside the others, which the question became."""

    def applied(self, stored: Conversation) -> Conversation:
        """The conversation as it will be."""
        own = stored.system_text if self.system_text is None else own_text(self.system_text)
        ids = stored.document_ids if self.document_ids is None else self.document_ids
        return replace(stored, system_text=own, document_ids=_with(ids, self.attached))


NOTHING = Changes()


def own_text(text: str | None) -> str | None:
    """A system text as it is stored; None for the default."""
    return storable(text or "").strip() or None


def lock_changed(
    connection: sa.Connection, conversation_id: str, changes: Changes
) -> sa.Row[*tuple[Any, ...]]:
    """`lock_conversation`, with the changes made. Raises InputError as `insert_new` does too."""
    if changes.new is not None:
        insert_new(connection, changes.new)
    head = store_queries.lock_conversation(connection, conversation_id)
    if changes.system_text is not None:
        values = {"system_text": own_text(changes.system_text)}
        store_queries.update_conversation(connection, conversation_id, values)
    if changes.document_ids is not None or changes.attached is not None:
        ids = changes.document_ids
        if ids is None:
            ids = store_queries.documents_of(connection, conversation_id)
        store_queries.put_documents(connection, conversation_id, _with(ids, changes.attached))
    return head


def insert_new(connection: sa.Connection, new: Conversation) -> None:
    """Write a conversation that begins. Raises IdTakenError for the id of somebody else's, and
    InputError where another request has just begun this one."""
    check_id(new.id)
    chosen = sa.select(conversations.c.id).where(conversations.c.id == new.id)
    if connection.scalar(chosen) is not None:
        if store_queries.lock_if_there(connection, new.id):
            raise InputError(BEING_CHANGED)
        raise IdTakenError(id_taken(new.id))
    try:
        fresh = imported(new, taken=(), now=now_text())
        store_queries.insert_conversation(connection, fresh)
    except IntegrityError as error:  # Another process was quicker.
        raise InputError(BEING_CHANGED) from error


def id_taken(conversation_id: str) -> str:
    """The sentence for an id that a conversation has."""
    return f"There is already a conversation {conversation_id!r}; choose another id."


def _with(ids: tuple[str, ...], attached: str | None) -> tuple[str, ...]:
    return ids if attached is None else tuple(dict.fromkeys((*ids, attached)))
