"""Statements about turns, their traces, and who is making them. Begins no transaction."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import sqlalchemy as sa

from chatbot import records
from chatbot.errors import InputError
from chatbot.messages import PromptTrace, Turn
from chatbot.records import from_json, storable, to_json
from chatbot.store_cache import Known
from chatbot.store_postgres import is_postgres
from chatbot.store_rows import TURN_COLUMNS, turn_of, turn_row
from chatbot.store_schema import traces, turns

# Databases limit the number of values in one statement.
_IDS_AT_ONCE = 500
_MARK = "\x1f"

# What every question runs is built once: building a statement takes as long as running it.
_CHAT = turns.c.conversation_id == sa.bindparam("chat")
_TURN = turns.c.id == sa.bindparam("turn")
_IN_ORDER = (
    sa.select(turns.c.id, turns.c.finish, turns.c.position).where(_CHAT).order_by(turns.c.position)
)
_RUNNERS = (
    sa.select(turns.c.runner)
    .where(_CHAT, turns.c.finish == "running", turns.c.runner.is_not(None))
    .where(turns.c.runner != sa.bindparam("mine"))
    .distinct()
)
_NEWEST = sa.select(sa.func.max(turns.c.position)).where(_CHAT)
_FINISH = sa.select(turns.c.finish).where(_TURN)
_OF_TURN = sa.delete(traces).where(traces.c.turn_id == sa.bindparam("turn"))
_REPLACE = sa.update(turns).where(_TURN, _CHAT)


def _in_brief(*, is_sorted: bool) -> sa.Select[Any, Any]:
    """Ids and ends of all turns as one text in place of thousands of rows, since mostly nothing
    has changed; and how many there are. SQLite takes the rows as the inner statement gives them."""
    inner = _IN_ORDER.subquery()
    joined = sa.func.aggregate_strings(inner.c.id + ":" + inner.c.finish, _MARK)
    brief = joined.aggregate_order_by(inner.c.position) if is_sorted else joined
    return sa.select(brief, sa.func.count())


_BRIEF = {is_sorted: _in_brief(is_sorted=is_sorted) for is_sorted in (False, True)}


def load_turns(
    connection: sa.Connection, conversation_id: str, known: Known, *, edits: int
) -> Known:
    """All turns of a conversation; those known with the same finish are not read again.

    Unless another number of `edits` says that turns were changed, by whichever process.
    """
    if known.edits != edits:
        known = Known(edits=edits)
    chat = {"chat": conversation_id}
    mark, n_turns = connection.execute(_BRIEF[is_postgres(connection)], chat).one()
    if mark is not None and mark == known.mark:
        return known
    parts = [part.rpartition(":") for part in (mark or "").split(_MARK) if part]
    places = [(id_, finish) for id_, _, finish in parts]
    if len(parts) != n_turns:  # An id from elsewhere holds the mark itself.
        mark, places = "", [(row.id, row.finish) for row in connection.execute(_IN_ORDER, chat)]
    mine = turns.c.conversation_id == conversation_id
    return Known(mark or "", _read(connection, mine, places, known), edits)


def _read(
    connection: sa.Connection,
    mine: sa.ColumnElement[bool],
    places: Sequence[tuple[str, str]],
    known: Known,
) -> tuple[Turn, ...]:
    found = {turn.id: turn for turn in known.turns}
    missing = [id_ for id_, finish in places if id_ not in found or found[id_].finish != finish]
    # A chat that was never read is read at once, not by its ids.
    is_new = len(missing) == len(places)
    for some in pieces(missing[:1] if is_new else missing):
        chosen = sa.select(*TURN_COLUMNS).where(mine if is_new else turns.c.id.in_(some))
        found |= {row.id: turn_of(row) for row in connection.execute(chosen)}
    return tuple(found[id_] for id_, _ in places)


def last_turns(
    connection: sa.Connection, conversation_id: str, n_turns: int, before: str | None
) -> tuple[Turn, ...]:
    """The newest turns, or those before one of them, oldest first."""
    mine = turns.c.conversation_id == conversation_id
    if before is not None:
        mine = sa.and_(mine, turns.c.position < position_of(connection, conversation_id, before))
    chosen = sa.select(*TURN_COLUMNS).where(mine).order_by(turns.c.position.desc())
    return tuple(turn_of(row) for row in connection.execute(chosen.limit(n_turns)))[::-1]


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
        newest = connection.scalar(_NEWEST, {"chat": conversation_id})
        position = 0 if newest is None else newest + 1
    place = {"position": position, "runner": runner}
    row = turn_row(turn) | {"id": turn.id, "conversation_id": conversation_id} | place
    connection.execute(sa.insert(turns), row)


def replace_turn(connection: sa.Connection, conversation_id: str, turn: Turn) -> bool:
    """Write a finished turn over the running one, with its trace. False if it is not there."""
    here = {"turn": turn.id, "chat": conversation_id}
    if connection.execute(_REPLACE, turn_row(turn) | {"runner": None} | here).rowcount == 0:
        return False
    connection.execute(_OF_TURN, {"turn": turn.id})
    insert_traces(connection, [turn])
    return True


def insert_turns(
    connection: sa.Connection, conversation_id: str, new: Sequence[Turn], *, first: int = 0
) -> None:
    """Write finished turns with their traces, from the place `first` on."""
    rows = [
        turn_row(turn)
        | {"id": storable(turn.id), "conversation_id": conversation_id, "position": place}
        for place, turn in enumerate(new, start=first)
    ]
    if rows:
        connection.execute(sa.insert(turns), rows)
    insert_traces(connection, new)


def runners(connection: sa.Connection) -> Sequence[str]:
    """Names of those who are making replies, or were when they died."""
    running = sa.and_(turns.c.finish == "running", turns.c.runner.is_not(None))
    return connection.scalars(sa.select(turns.c.runner).where(running).distinct()).all()


def interrupt(connection: sa.Connection, names: Sequence[str]) -> None:
    """Mark the running turns of these runners as interrupted."""
    running = sa.and_(turns.c.finish == "running", turns.c.runner.in_(names))
    values = {"finish": "interrupted", "runner": None}
    connection.execute(sa.update(turns).where(running).values(values))


def others_running(connection: sa.Connection, conversation_id: str, runner: str) -> Sequence[str]:
    """Who else is making a reply in a conversation, or was when it died."""
    return connection.scalars(_RUNNERS, {"chat": conversation_id, "mine": runner}).all()


def is_running(connection: sa.Connection, turn_id: str) -> bool:
    """Whether a turn has not been finished yet."""
    return connection.scalar(_FINISH, {"turn": turn_id}) in ("running", None)


def traces_of(connection: sa.Connection, conversation_id: str) -> dict[str, PromptTrace]:
    """The traces of all turns that have one, by the id of the turn."""
    chosen = sa.select(traces).join(turns, turns.c.id == traces.c.turn_id)
    rows = connection.execute(chosen.where(turns.c.conversation_id == conversation_id))
    return {row.turn_id: from_json(records.TRACE, row.trace) for row in rows}


def insert_traces(connection: sa.Connection, finished: Iterable[Turn]) -> None:
    rows = [{"turn_id": turn.id, "trace": to_json(turn.trace)} for turn in finished if turn.trace]
    if rows:
        connection.execute(sa.insert(traces), rows)


def position_of(connection: sa.Connection, conversation_id: str, turn_id: str) -> int:
    """The place of a turn. Raises InputError if the conversation has no such turn."""
    here = sa.and_(turns.c.id == turn_id, turns.c.conversation_id == conversation_id)
    found = connection.scalar(sa.select(turns.c.position).where(here))
    if found is None:
        raise InputError(no_such_turn(turn_id))
    return int(found)


def no_such_turn(turn_id: str) -> str:
    """The sentence for an id that no turn of a conversation has."""
    return f"The turn {turn_id!r} is no longer in the conversation; reload the page."


def count_before(connection: sa.Connection, conversation_id: str, position: int) -> int:
    """How many turns come before a place. Places may have gaps where turns were forgotten."""
    mine = sa.and_(turns.c.conversation_id == conversation_id, turns.c.position < position)
    return connection.scalar(sa.select(sa.func.count()).select_from(turns).where(mine)) or 0


def pieces(ids: Sequence[str]) -> Iterable[Sequence[str]]:
    return (ids[n : n + _IDS_AT_ONCE] for n in range(0, len(ids), _IDS_AT_ONCE))
