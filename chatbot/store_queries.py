"""The statements of the store, each on a connection that it is given. Begins no transaction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import sqlalchemy as sa

from chatbot.errors import InputError
from chatbot.messages import Conversation
from chatbot.records import storable, to_json
from chatbot.store_branches import insert_branch
from chatbot.store_cache import Known
from chatbot.store_edits import insert_base
from chatbot.store_owner import is_mine, owner_of
from chatbot.store_rows import (
    Row,
    title_columns,
)
from chatbot.store_schema import (
    conversation_documents,
    conversations,
    holds,
    turns,
)
from chatbot.store_summaries import current_summary, insert_fold_decisions, insert_summary
from chatbot.store_turns import insert_turns, load_turns, no_such_turn, pieces

# What every question runs is built once: building a statement takes as long as running it.
_HERE = sa.and_(
    conversations.c.id == sa.bindparam("chat"),
    conversations.c.owner == sa.bindparam("whose"),
    conversations.c.branch_of.is_(None),
)
_HEAD = sa.select(conversations).where(_HERE)
_LOCKED = _HEAD.with_for_update()
_UPDATE = sa.update(conversations).where(_HERE)
_DOCUMENTS = (
    sa.select(conversation_documents.c.document_id)
    .where(conversation_documents.c.conversation_id == sa.bindparam("chat"))
    .where(conversation_documents.c.enabled.is_(sa.true()))
    .order_by(conversation_documents.c.position)
)


@dataclass(frozen=True, slots=True)
class ConversationInfo:
    """A conversation as lists show it. `updated` is UTC, ISO 8601; `turns` counts them."""

    id: str
    title: str
    updated: str
    turns: int
    pinned: bool = False


def load_conversation(
    connection: sa.Connection, conversation_id: str, known: Known
) -> tuple[Conversation, Known]:
    """A conversation without traces, and what is known of its turns now.

    Turns that were known with the same finish are not read again. Raises InputError if there is
    no conversation of this id.
    """
    head = connection.execute(_HEAD, _place(connection, conversation_id)).first()
    if head is None:
        raise InputError(unknown_conversation(conversation_id))
    known = load_turns(connection, conversation_id, known, edits=head.edits)
    conversation = Conversation(
        id=head.id,
        title=head.title,
        turns=known.turns,
        summary=current_summary(connection, conversation_id),
        system_text=head.system_text,
        created=head.created,
        updated=head.updated,
        document_ids=documents_of(connection, conversation_id),
    )
    return conversation, known


def rolled_back(
    connection: sa.Connection, conversation: Conversation, turn_id: str
) -> Conversation:
    """The conversation as it was before a turn. Raises InputError if it has no such turn."""
    ids = [turn.id for turn in conversation.turns]
    if turn_id not in ids:
        raise InputError(no_such_turn(turn_id))
    kept, gone = ids[: ids.index(turn_id)], set(ids[ids.index(turn_id) :])
    summary = current_summary(connection, conversation.id, most_turns=len(kept))
    if summary is not None:
        facts = tuple(fact for fact in summary.facts if fact.turn_id not in gone)
        summary = replace(summary, facts=facts)
    return replace(conversation, turns=conversation.turns[: len(kept)], summary=summary)


def list_infos(connection: sa.Connection, *, needle: str = "") -> list[ConversationInfo]:
    """Conversations whose title or messages contain a folded text: pinned ones first, then newest.

    Branches are not listed, and not searched.
    """
    n_turns = sa.func.count(turns.c.id).label("turns")
    c = conversations.c
    statement = (
        sa.select(c.id, c.title, c.updated, n_turns, c.pinned)
        .select_from(conversations.outerjoin(turns))
        .where(is_mine(connection), c.branch_of.is_(None))
        .group_by(c.id, c.title, c.updated, c.pinned)
        .order_by(c.pinned.desc(), c.updated.desc(), c.id)
    )
    if needle:
        said = holds(turns.c.folded_text, needle)
        titled = holds(conversations.c.folded_title, needle)
        talked = conversations.c.id.in_(sa.select(turns.c.conversation_id).where(said))
        statement = statement.where(sa.or_(titled, talked))
    return [ConversationInfo(*row) for row in connection.execute(statement)]


def lock_conversation(connection: sa.Connection, conversation_id: str) -> sa.Row[*tuple[Any, ...]]:
    """The row of a conversation, kept from other writers until the transaction ends.

    Raises InputError if there is none of this id.
    """
    head = connection.execute(_LOCKED, _place(connection, conversation_id)).first()
    if head is None:
        raise InputError(unknown_conversation(conversation_id))
    return head


def lock_if_there(connection: sa.Connection, conversation_id: str) -> bool:
    """`lock_conversation`, but False if there is none of this id."""
    return connection.execute(_LOCKED, _place(connection, conversation_id)).first() is not None


def is_only_begun(connection: sa.Connection, conversation_id: str) -> bool:
    """Whether there is a conversation of this id with nothing in it; it is locked then."""
    head = connection.execute(_LOCKED, _place(connection, conversation_id)).first()
    if head is None or head.title or head.system_text or head.pinned:
        return False
    there = (turns, conversation_documents)
    chosen = (sa.select(t.c.conversation_id).where(t.c.conversation_id == head.id) for t in there)
    return all(connection.scalar(one.limit(1)) is None for one in chosen)


def update_conversation(connection: sa.Connection, conversation_id: str, values: Row) -> None:
    """Change columns of a conversation. Raises InputError if there is none of this id."""
    given = values | _place(connection, conversation_id)
    if connection.execute(_UPDATE, given).rowcount == 0:
        raise InputError(unknown_conversation(conversation_id))


def insert_conversation(connection: sa.Connection, new: Conversation) -> None:
    """Write a whole conversation whose ids are free."""
    head = {
        "id": storable(new.id),
        "owner": owner_of(connection),
        "system_text": None if new.system_text is None else storable(new.system_text),
        "created": storable(new.created),
        "updated": new.updated,
    }
    connection.execute(sa.insert(conversations).values(head | title_columns(new.title)))
    insert_turns(connection, storable(new.id), new.turns)
    put_documents(connection, new.id, new.document_ids)
    if new.summary:
        insert_base(connection, new.id, new.summary)
        insert_summary(connection, new.id, new.summary)
    insert_fold_decisions(connection, new.id, new.decisions)
    for branch in new.branches:
        insert_branch(connection, new.id, branch, now=new.updated)


def put_documents(
    connection: sa.Connection, conversation_id: str, document_ids: Sequence[str]
) -> None:
    """Enable exactly these documents; others that the chat had stay listed, but disabled."""
    table = conversation_documents
    ids = list(dict.fromkeys(storable(document_id) for document_id in document_ids))
    mine = table.c.conversation_id == conversation_id
    for some in pieces(ids):
        connection.execute(sa.delete(table).where(mine, table.c.document_id.in_(some)))
    connection.execute(sa.update(table).where(mine).values(enabled=False))
    rows = [
        {"conversation_id": conversation_id, "document_id": one, "position": n, "enabled": True}
        for n, one in enumerate(ids)
    ]
    if rows:
        connection.execute(sa.insert(table), rows)


def is_document_used(connection: sa.Connection, document_id: str) -> bool:
    """Whether a conversation has a document enabled."""
    table = conversation_documents
    used = sa.and_(table.c.document_id == document_id, table.c.enabled.is_(sa.true()))
    chosen = sa.select(table.c.document_id).join(conversations).where(used, is_mine(connection))
    return connection.scalar(chosen.limit(1)) is not None


def is_attached(connection: sa.Connection, name: str) -> bool:
    """Whether the notice of a turn names a document."""
    owners = sa.select(conversations.c.id).where(is_mine(connection))
    named = sa.and_(holds(turns.c.notices, to_json(name)), turns.c.conversation_id.in_(owners))
    return connection.scalar(sa.select(turns.c.id).where(named).limit(1)) is not None


def is_taken(connection: sa.Connection, conversation_id: str) -> bool:
    """Whether a conversation, whoever's it is, has this id."""
    chosen = sa.select(conversations.c.id).where(conversations.c.id == conversation_id)
    return connection.scalar(chosen) is not None


def taken_turn_ids(connection: sa.Connection, conversation: Conversation) -> set[str]:
    """Those ids of a conversation's turns that turns in the database have already."""
    taken: set[str] = set()
    for some in pieces([turn.id for turn in conversation.turns]):
        taken |= set(connection.scalars(sa.select(turns.c.id).where(turns.c.id.in_(some))))
    return taken


def unknown_conversation(conversation_id: str) -> str:
    """The sentence for an id that no conversation has."""
    return f"There is no conversation {conversation_id!r}; it may have been deleted."


def _place(connection: sa.Connection, conversation_id: str) -> dict[str, str]:
    return {"chat": conversation_id, "whose": owner_of(connection)}


def documents_of(connection: sa.Connection, conversation_id: str) -> tuple[str, ...]:
    """The ids of the documents that a conversation may use, in their order."""
    return tuple(connection.scalars(_DOCUMENTS, {"chat": conversation_id}))
