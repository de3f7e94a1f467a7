"""The statements of the store, each on a connection that it is given. Begins no transaction."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import sqlalchemy as sa

from chatbot.errors import InputError
from chatbot.messages import Conversation, Turn
from chatbot.records import storable, to_json
from chatbot.store_branches import no_such_turn, position_of
from chatbot.store_rows import (
    TURN_COLUMNS,
    Row,
    title_columns,
    turn_of,
    turn_row,
)
from chatbot.store_schema import (
    conversation_documents,
    conversations,
    traces,
    turns,
)
from chatbot.store_summaries import current_summary, insert_summary

# Databases limit the number of values in one statement.
_IDS_AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class ConversationInfo:
    """A conversation as lists show it. `updated` is UTC, ISO 8601; `turns` counts them."""

    id: str
    title: str
    updated: str
    turns: int
    pinned: bool = False


def load_conversation(
    connection: sa.Connection, conversation_id: str, known: Mapping[str, Turn]
) -> Conversation:
    """A conversation without traces. Raises InputError if there is none of this id.

    Turns that are `known` with the same finish are taken as they are.
    """
    head = connection.execute(_head(conversation_id)).first()
    if head is None:
        raise InputError(unknown_conversation(conversation_id))
    return Conversation(
        id=head.id,
        title=head.title,
        turns=_load_turns(connection, conversation_id, known),
        summary=current_summary(connection, conversation_id),
        system_text=head.system_text,
        created=head.created,
        updated=head.updated,
        document_ids=_documents(connection, conversation_id),
    )


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


def last_turns(
    connection: sa.Connection, conversation_id: str, n_turns: int, before: str | None
) -> tuple[Turn, ...]:
    """The newest turns, or those before one of them, oldest first."""
    mine = turns.c.conversation_id == conversation_id
    if before is not None:
        mine = sa.and_(mine, turns.c.position < position_of(connection, conversation_id, before))
    chosen = sa.select(*TURN_COLUMNS).where(mine).order_by(turns.c.position.desc())
    return tuple(turn_of(row) for row in connection.execute(chosen.limit(n_turns)))[::-1]


def list_infos(connection: sa.Connection, *, needle: str = "") -> list[ConversationInfo]:
    """Conversations whose title or messages contain a folded text: pinned ones first, then newest.

    Branches are not listed, and not searched.
    """
    n_turns = sa.func.count(turns.c.id).label("turns")
    c = conversations.c
    statement = (
        sa.select(c.id, c.title, c.updated, n_turns, c.pinned)
        .select_from(conversations.outerjoin(turns))
        .where(c.branch_of.is_(None))
        .group_by(c.id, c.title, c.updated, c.pinned)
        .order_by(c.pinned.desc(), c.updated.desc(), c.id)
    )
    if needle:
        said = turns.c.folded_text.contains(needle, autoescape=True)
        titled = conversations.c.folded_title.contains(needle, autoescape=True)
        talked = conversations.c.id.in_(sa.select(turns.c.conversation_id).where(said))
        statement = statement.where(sa.or_(titled, talked))
    return [ConversationInfo(*row) for row in connection.execute(statement)]


def lock_conversation(connection: sa.Connection, conversation_id: str) -> sa.Row[*tuple[Any, ...]]:
    """The row of a conversation, kept from other writers until the transaction ends.

    Raises InputError if there is none of this id.
    """
    head = connection.execute(_head(conversation_id).with_for_update()).first()
    if head is None:
        raise InputError(unknown_conversation(conversation_id))
    return head


def update_conversation(connection: sa.Connection, conversation_id: str, values: Row) -> None:
    """Change columns of a conversation. Raises InputError if there is none of this id."""
    mine = sa.and_(conversations.c.id == conversation_id, conversations.c.branch_of.is_(None))
    if connection.execute(sa.update(conversations).where(mine).values(values)).rowcount == 0:
        raise InputError(unknown_conversation(conversation_id))


def append_turn(
    connection: sa.Connection,
    conversation_id: str,
    turn: Turn,
    *,
    runner: str,
    position: int | None = None,
) -> None:
    """Put a running turn at the end of a conversation that is locked, or in the place of others."""
    if position is None:
        mine = turns.c.conversation_id == conversation_id
        newest = connection.scalar(sa.select(sa.func.max(turns.c.position)).where(mine))
        position = 0 if newest is None else newest + 1
    place = {"position": position, "runner": runner}
    row = turn_row(turn) | {"id": turn.id, "conversation_id": conversation_id} | place
    connection.execute(sa.insert(turns).values(row))


def replace_turn(connection: sa.Connection, conversation_id: str, turn: Turn) -> bool:
    """Write a finished turn over the running one, with its trace. False if it is not there."""
    here = sa.and_(turns.c.id == turn.id, turns.c.conversation_id == conversation_id)
    values = turn_row(turn) | {"runner": None}
    if connection.execute(sa.update(turns).where(here).values(values)).rowcount == 0:
        return False
    connection.execute(sa.delete(traces).where(traces.c.turn_id == turn.id))
    _insert_traces(connection, [turn])
    return True


def insert_conversation(connection: sa.Connection, new: Conversation) -> None:
    """Write a whole conversation whose ids are free."""
    head = {
        "id": storable(new.id),
        "system_text": None if new.system_text is None else storable(new.system_text),
        "created": storable(new.created),
        "updated": new.updated,
    }
    connection.execute(sa.insert(conversations).values(head | title_columns(new.title)))
    rows = [
        turn_row(turn) | {"id": storable(turn.id), "conversation_id": head["id"], "position": n}
        for n, turn in enumerate(new.turns)
    ]
    if rows:
        connection.execute(sa.insert(turns), rows)
    _insert_traces(connection, new.turns)
    put_documents(connection, new.id, new.document_ids)
    if new.summary:
        insert_summary(connection, new.id, new.summary)


def put_documents(
    connection: sa.Connection, conversation_id: str, document_ids: Sequence[str]
) -> None:
    """Enable exactly these documents; others that the chat had stay listed, but disabled."""
    table = conversation_documents
    ids = list(dict.fromkeys(storable(document_id) for document_id in document_ids))
    mine = table.c.conversation_id == conversation_id
    for some in _pieces(ids):
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
    mine = sa.and_(table.c.document_id == document_id, table.c.enabled.is_(sa.true()))
    return connection.scalar(sa.select(table.c.document_id).where(mine).limit(1)) is not None


def is_attached(connection: sa.Connection, name: str, conversation_id: str | None) -> bool:
    """Whether the notice of a turn names a document; of any turn for None."""
    named = turns.c.notices.contains(to_json(name), autoescape=True)
    if conversation_id is not None:
        family = sa.or_(
            conversations.c.id == conversation_id, conversations.c.branch_of == conversation_id
        )
        owners = sa.select(conversations.c.id).where(family)
        named = sa.and_(named, turns.c.conversation_id.in_(owners))
    return connection.scalar(sa.select(turns.c.id).where(named).limit(1)) is not None


def runners(connection: sa.Connection) -> Sequence[str]:
    """Names of those who are making replies, or were when they died."""
    running = sa.and_(turns.c.finish == "running", turns.c.runner.is_not(None))
    return connection.scalars(sa.select(turns.c.runner).where(running).distinct()).all()


def interrupt(connection: sa.Connection, names: Sequence[str]) -> None:
    """Mark the running turns of these runners as interrupted."""
    running = sa.and_(turns.c.finish == "running", turns.c.runner.in_(names))
    values = {"finish": "interrupted", "runner": None}
    connection.execute(sa.update(turns).where(running).values(values))


def taken_ids(connection: sa.Connection, conversation: Conversation) -> set[str]:
    """Those ids of a conversation and of its turns that are in the database already."""
    chosen = sa.select(conversations.c.id).where(conversations.c.id == conversation.id)
    taken = set(connection.scalars(chosen))
    for some in _pieces([turn.id for turn in conversation.turns]):
        taken |= set(connection.scalars(sa.select(turns.c.id).where(turns.c.id.in_(some))))
    return taken


def unknown_conversation(conversation_id: str) -> str:
    """The sentence for an id that no conversation has."""
    return f"There is no conversation {conversation_id!r}; it may have been deleted."


def _head(conversation_id: str) -> sa.Select[Any]:
    here = conversations.c.id == conversation_id
    return sa.select(conversations).where(here, conversations.c.branch_of.is_(None))


def _load_turns(
    connection: sa.Connection, conversation_id: str, known: Mapping[str, Turn]
) -> tuple[Turn, ...]:
    mine = turns.c.conversation_id == conversation_id
    places = connection.execute(
        sa.select(turns.c.id, turns.c.finish).where(mine).order_by(turns.c.position)
    ).all()
    missing = [id_ for id_, finish in places if id_ not in known or known[id_].finish != finish]
    read: dict[str, Turn] = {}
    for some in _pieces(missing):
        # A chat that was never read is read at once, not by its ids.
        which = mine if len(missing) == len(places) else turns.c.id.in_(some)
        rows = connection.execute(sa.select(*TURN_COLUMNS).where(which))
        read |= {row.id: turn_of(row) for row in rows}
        if which is mine:
            break
    return tuple(read.get(id_) or known[id_] for id_, _ in places)


def _documents(connection: sa.Connection, conversation_id: str) -> tuple[str, ...]:
    table = conversation_documents
    mine = sa.and_(table.c.conversation_id == conversation_id, table.c.enabled.is_(sa.true()))
    chosen = sa.select(table.c.document_id).where(mine).order_by(table.c.position)
    return tuple(connection.scalars(chosen))


def _insert_traces(connection: sa.Connection, finished: Iterable[Turn]) -> None:
    rows = [{"turn_id": turn.id, "trace": to_json(turn.trace)} for turn in finished if turn.trace]
    if rows:
        connection.execute(sa.insert(traces), rows)


def _pieces(ids: Sequence[str]) -> Iterable[Sequence[str]]:
    return (ids[n : n + _IDS_AT_ONCE] for n in range(0, len(ids), _IDS_AT_ONCE))
