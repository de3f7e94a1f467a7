"""Statements that cut turns off a conversation, keep them as a branch, and bring them back.

A branch is a row of `conversations` that no list shows; it owns the turns that were cut off, and
the summaries and fold decisions that covered one of them. Begins no transaction.
"""

from __future__ import annotations

from collections.abc import Container
from typing import Any

import sqlalchemy as sa

from chatbot import records
from chatbot.messages import Branch, Version
from chatbot.records import from_json, new_id, to_json_or_none
from chatbot.store_owner import owner_of
from chatbot.store_schema import conversations, fold_decisions, summaries, turns
from chatbot.store_turns import count_before, insert_turns, position_of

_NUMBERED = ((summaries, summaries.c.version), (fold_decisions, fold_decisions.c.number))


def cut(
    connection: sa.Connection, conversation_id: str, position: int, *, keep: bool, now: str
) -> None:
    """Take the turns from a place on out of a conversation, with all that covers one of them.

    `keep` makes a branch of them; else they are gone. Branches of theirs go with them.
    """
    tail = sa.and_(turns.c.conversation_id == conversation_id, turns.c.position >= position)
    cut_ids = set(connection.scalars(sa.select(turns.c.id).where(tail)))
    n_before = count_before(connection, conversation_id, position)
    later = sa.and_(
        conversations.c.branch_of == conversation_id, conversations.c.fork_position > position
    )
    if keep:
        branch = _new_branch(connection, conversation_id, position, now)
        connection.execute(sa.update(turns).where(tail).values(conversation_id=branch))
        _move_covering(connection, conversation_id, branch, n_before)
        connection.execute(sa.update(conversations).where(later).values(branch_of=branch))
    else:
        connection.execute(sa.delete(turns).where(tail))
        connection.execute(sa.delete(conversations).where(later))
        stale = sa.and_(
            summaries.c.conversation_id == conversation_id, summaries.c.covers > n_before
        )
        connection.execute(sa.update(summaries).where(stale).values(valid=False))
    _drop_facts_of(connection, conversation_id, cut_ids)


def is_unanswered(connection: sa.Connection, conversation_id: str, position: int) -> bool:
    """Whether all from this place on is one question without any reply."""
    tail = sa.and_(turns.c.conversation_id == conversation_id, turns.c.position >= position)
    rows = connection.execute(sa.select(turns.c.assistant_messages).where(tail)).all()
    return len(rows) <= 1 and all(row.assistant_messages is None for row in rows)


def bring_back(
    connection: sa.Connection, conversation_id: str, version_id: str, *, now: str
) -> None:
    """Put a branch in the place of the turns that stand there now; they become a branch.

    Raises InputError if no branch that forks off here begins with the turn `version_id`.
    """
    branch = _branch_that_begins(connection, conversation_id, version_id)
    if branch is None:
        position_of(connection, conversation_id, version_id)  # It is there already, or unknown.
        return
    position = branch.fork_position
    here = sa.and_(turns.c.conversation_id == conversation_id, turns.c.position >= position)
    if connection.scalar(sa.select(turns.c.id).where(here).limit(1)) is not None:
        cut(connection, conversation_id, position, keep=True, now=now)
    theirs = turns.c.conversation_id == branch.id
    connection.execute(sa.update(turns).where(theirs).values(conversation_id=conversation_id))
    _move_covering(connection, branch.id, conversation_id, 0)
    own = conversations.c.branch_of == branch.id
    connection.execute(sa.update(conversations).where(own).values(branch_of=conversation_id))
    connection.execute(sa.delete(conversations).where(conversations.c.id == branch.id))


def versions_at(
    connection: sa.Connection, conversation_id: str, position: int
) -> tuple[Version, ...]:
    """The turns that stand, or once stood, in a place of a conversation, oldest first."""
    branches = sa.select(conversations.c.id).where(
        conversations.c.branch_of == conversation_id, conversations.c.fork_position == position
    )
    owners = [conversation_id, *connection.scalars(branches)]
    found = [_version(connection, owner, position, owner == conversation_id) for owner in owners]
    return tuple(sorted((v for v in found if v), key=lambda v: (v.created, v.id)))


def fork_positions(connection: sa.Connection, conversation_id: str) -> set[int]:
    """The places where branches fork off."""
    mine = conversations.c.branch_of == conversation_id
    chosen = sa.select(conversations.c.fork_position).where(mine).distinct()
    return {int(position) for position in connection.scalars(chosen) if position is not None}


def family(connection: sa.Connection, conversation_id: str) -> list[str]:
    """The conversation, its branches, theirs, and so on."""
    return followers(connection, conversation_id, -1)


def followers(connection: sa.Connection, conversation_id: str, position: int) -> list[str]:
    """The conversation, and all branches of the family that fork off after a place of it."""
    found, newest = [conversation_id], [conversation_id]
    while newest:
        mine = sa.and_(
            conversations.c.branch_of.in_(newest), conversations.c.fork_position > position
        )
        newest = list(connection.scalars(sa.select(conversations.c.id).where(mine)))
        found += newest
    return found


def delete_branches_at(connection: sa.Connection, conversation_id: str, position: int) -> None:
    """Remove the branches that fork off at a place, with all that hangs on them."""
    mine = conversations.c.branch_of == conversation_id
    here = sa.and_(mine, conversations.c.fork_position == position)
    connection.execute(sa.delete(conversations).where(here))


def insert_branch(
    connection: sa.Connection, conversation_id: str, branch: Branch, *, now: str
) -> None:
    """Write a branch from elsewhere, whose turns have fresh ids."""
    owner = _new_branch(connection, conversation_id, branch.at, now)
    insert_turns(connection, owner, branch.turns, first=branch.at)


def _new_branch(connection: sa.Connection, conversation_id: str, position: int, now: str) -> str:
    row = {"id": new_id(), "owner": owner_of(connection), "created": now, "updated": now}
    fork = {
        "title": "",
        "folded_title": "",
        "branch_of": conversation_id,
        "fork_position": position,
    }
    connection.execute(sa.insert(conversations).values(row | fork))
    return row["id"]


def _move_covering(connection: sa.Connection, old: str, new: str, n_before: int) -> None:
    """Move summaries and decisions about more than `n_before` turns, behind those of `new`."""
    for table, number in _NUMBERED:
        newest = connection.scalar(
            sa.select(sa.func.max(number)).where(table.c.conversation_id == new)
        )
        mine = sa.and_(table.c.conversation_id == old, table.c.covers > n_before)
        values = {"conversation_id": new, number.name: number + (newest or 0)}
        connection.execute(sa.update(table).where(mine).values(values))


def _branch_that_begins(
    connection: sa.Connection, conversation_id: str, version_id: str
) -> sa.Row[*tuple[Any, ...]] | None:
    first = sa.and_(
        turns.c.conversation_id == conversations.c.id,
        turns.c.position == conversations.c.fork_position,
        turns.c.id == version_id,
    )
    mine = conversations.c.branch_of == conversation_id
    chosen = sa.select(conversations.c.id, conversations.c.fork_position).join(turns, first)
    return connection.execute(chosen.where(mine)).first()


def _version(
    connection: sa.Connection, owner: str, position: int, is_current: bool
) -> Version | None:
    tail = sa.and_(turns.c.conversation_id == owner, turns.c.position >= position)
    columns = (turns.c.id, turns.c.position, turns.c.created)
    texts = (turns.c.user_messages, turns.c.assistant_messages)
    chosen = sa.select(*columns, *texts).where(tail).order_by(turns.c.position)
    first = connection.execute(chosen.limit(1)).first()
    if first is None or first.position != position:
        return None
    n_turns = connection.scalar(sa.select(sa.func.count()).select_from(turns).where(tail)) or 0
    question, reply = (_spoken(first.user_messages), _spoken(first.assistant_messages))
    return Version(first.id, question, reply, first.created, n_turns, is_current)


def _spoken(text: str | None) -> str:
    messages = () if text is None else from_json(records.MESSAGES, text)
    return "\n\n".join(message.spoken for message in messages)


def _drop_facts_of(
    connection: sa.Connection, conversation_id: str, turn_ids: Container[str]
) -> None:
    """What the user wrote into older summaries about turns that are cut off now."""
    mine = summaries.c.conversation_id == conversation_id
    columns = (summaries.c.version, summaries.c.facts)
    for row in connection.execute(sa.select(*columns).where(mine, summaries.c.facts.is_not(None))):
        facts = from_json(records.FACTS, row.facts)
        kept = tuple(f for f in facts if f.turn_id not in turn_ids)
        if len(kept) < len(facts):
            here = sa.and_(mine, summaries.c.version == row.version)
            values = {"facts": to_json_or_none(kept)}
            connection.execute(sa.update(summaries).where(here).values(values))
