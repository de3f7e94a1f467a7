"""The statements of the store, each on a connection that it is given. Begins no transaction."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from chatbot import records
from chatbot.errors import InputError
from chatbot.messages import Conversation, FoldDecision, RollingSummary, Turn
from chatbot.records import from_json, storable, to_json
from chatbot.store_rows import (
    SUMMARY_COLUMNS,
    TURN_COLUMNS,
    Row,
    summary_of,
    summary_row,
    title_columns,
    turn_of,
    turn_row,
)
from chatbot.store_schema import (
    conversation_documents,
    conversations,
    fold_decisions,
    summaries,
    traces,
    turns,
)

# Databases limit the number of values in one statement.
_IDS_AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class ConversationInfo:
    """A conversation as lists show it. `updated` is UTC, ISO 8601; `turns` counts them."""

    id: str
    title: str
    updated: str
    turns: int


def load_conversation(connection: sa.Connection, conversation_id: str) -> Conversation:
    """A conversation without traces. Raises InputError if there is none of this id."""
    chosen = sa.select(conversations).where(conversations.c.id == conversation_id)
    head = connection.execute(chosen).first()
    if head is None:
        raise InputError(unknown_conversation(conversation_id))
    mine = turns.c.conversation_id == conversation_id
    rows = connection.execute(sa.select(*TURN_COLUMNS).where(mine).order_by(turns.c.position))
    return Conversation(
        id=head.id,
        title=head.title,
        turns=tuple(turn_of(row) for row in rows),
        summary=_current_summary(connection, conversation_id),
        system_text=head.system_text,
        created=head.created,
        updated=head.updated,
        document_ids=_documents(connection, conversation_id),
    )


def list_infos(connection: sa.Connection, *, needle: str = "") -> list[ConversationInfo]:
    """Conversations whose title or messages contain a folded text, newest first."""
    n_turns = sa.func.count(turns.c.id).label("turns")
    head = (conversations.c.id, conversations.c.title, conversations.c.updated)
    statement = (
        sa.select(*head, n_turns)
        .select_from(conversations.outerjoin(turns))
        .group_by(*head)
        .order_by(conversations.c.updated.desc(), conversations.c.id)
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
    chosen = sa.select(conversations).where(conversations.c.id == conversation_id)
    head = connection.execute(chosen.with_for_update()).first()
    if head is None:
        raise InputError(unknown_conversation(conversation_id))
    return head


def update_conversation(connection: sa.Connection, conversation_id: str, values: Row) -> None:
    """Change columns of a conversation. Raises InputError if there is none of this id."""
    mine = conversations.c.id == conversation_id
    if connection.execute(sa.update(conversations).where(mine).values(values)).rowcount == 0:
        raise InputError(unknown_conversation(conversation_id))


def append_turn(
    connection: sa.Connection, conversation_id: str, turn: Turn, *, runner: str
) -> None:
    """Put a running turn at the end of a conversation that is locked."""
    mine = turns.c.conversation_id == conversation_id
    newest = connection.scalar(sa.select(sa.func.max(turns.c.position)).where(mine))
    place = {"position": 0 if newest is None else newest + 1, "runner": runner}
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


def drop_turns(connection: sa.Connection, conversation_id: str, turn_id: str) -> None:
    """Remove a turn and all later ones, and mark the summaries that cover one of them."""
    mine = turns.c.conversation_id == conversation_id
    place = sa.select(turns.c.position).where(mine, turns.c.id == turn_id)
    first = connection.scalar(place)
    if first is None:
        raise InputError(f"There is no turn {turn_id!r} in this conversation; it may be removed.")
    connection.execute(sa.delete(turns).where(mine, turns.c.position >= first))
    stale = sa.and_(summaries.c.conversation_id == conversation_id, summaries.c.covers > first)
    connection.execute(sa.update(summaries).where(stale).values(valid=False))


def turn_at(connection: sa.Connection, conversation_id: str, position: int) -> str | None:
    """The id of the turn at a place that counts from 0."""
    here = sa.and_(turns.c.conversation_id == conversation_id, turns.c.position == position)
    return connection.scalar(sa.select(turns.c.id).where(here))


def summary_versions(connection: sa.Connection, conversation_id: str) -> list[RollingSummary]:
    """All versions, oldest first."""
    mine = summaries.c.conversation_id == conversation_id
    chosen = sa.select(*SUMMARY_COLUMNS).where(mine).order_by(summaries.c.version)
    return [summary_of(row) for row in connection.execute(chosen)]


def insert_summary(
    connection: sa.Connection, conversation_id: str, summary: RollingSummary
) -> None:
    """Add a version, which is then the current one."""
    mine = summaries.c.conversation_id == conversation_id
    newest = connection.scalar(sa.select(sa.func.max(summaries.c.version)).where(mine)) or 0
    key = {"conversation_id": conversation_id, "version": newest + 1, "valid": True}
    connection.execute(sa.insert(summaries).values(summary_row(summary) | key))


def insert_fold_decisions(
    connection: sa.Connection, conversation_id: str, decisions: Sequence[FoldDecision]
) -> None:
    """Add decisions after those that are there; none if there is no such conversation."""
    chosen = sa.select(conversations.c.id).where(conversations.c.id == conversation_id)
    if not decisions or connection.scalar(chosen) is None:
        return
    mine = fold_decisions.c.conversation_id == conversation_id
    newest = connection.scalar(sa.select(sa.func.max(fold_decisions.c.number)).where(mine)) or 0
    rows = [
        {
            "conversation_id": conversation_id,
            "number": n,
            "covers": decision.covers,
            "decision": to_json(decision),
        }
        for n, decision in enumerate(decisions, start=newest + 1)
    ]
    connection.execute(sa.insert(fold_decisions), rows)


def fold_decisions_of(connection: sa.Connection, conversation_id: str) -> tuple[FoldDecision, ...]:
    """All decisions, oldest first."""
    mine = fold_decisions.c.conversation_id == conversation_id
    chosen = sa.select(fold_decisions.c.decision).where(mine).order_by(fold_decisions.c.number)
    return tuple(from_json(records.FOLD_DECISION, text) for text in connection.scalars(chosen))


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


def _current_summary(connection: sa.Connection, conversation_id: str) -> RollingSummary | None:
    mine = summaries.c.conversation_id == conversation_id
    chosen = sa.select(*SUMMARY_COLUMNS).where(mine, summaries.c.valid.is_(sa.true()))
    row = connection.execute(chosen.order_by(summaries.c.version.desc()).limit(1)).first()
    return None if row is None else summary_of(row)


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
