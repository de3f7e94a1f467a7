"""Statements behind the user's hands: changed summaries and facts, and turns that are forgotten.

Begins no transaction. What is deleted here is overwritten in the file, as in all of the store.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import sqlalchemy as sa

from chatbot import records
from chatbot.errors import InputError
from chatbot.messages import Notice, RollingSummary
from chatbot.records import from_json, to_json_or_none
from chatbot.store_branches import delete_branches_at, family, followers
from chatbot.store_rows import SUMMARY_COLUMNS, summary_of, summary_row, title_columns
from chatbot.store_schema import conversations, fold_decisions, summaries, turns
from chatbot.store_sources import attached_names, forget_sources, scrub_traces
from chatbot.store_turns import count_before, position_of
from chatbot.titles import title_from

BEING_ANSWERED = "This conversation is still being answered; wait or stop it."
"""The sentence of `chatbot.busy`, as another process may be the one that answers."""
Change = Callable[[RollingSummary], RollingSummary]
Scrub = Callable[[dict[str, Any], bool], dict[str, Any]]
"""The JSON object of a trace without what is forgotten; the flag says that summaries held it."""
ScrubNotices = Callable[[Sequence[Notice]], tuple[Notice, ...]]
BASE = RollingSummary("", 0, 0, origin="edited")
"""What users wrote is kept with this as well, so that it outlasts every summary."""
_BASE_VERSION = 0


def refuse_running(connection: sa.Connection, conversation_id: str) -> None:
    """Raise InputError while a turn of the conversation is being answered, by any program."""
    running = sa.and_(turns.c.conversation_id == conversation_id, turns.c.finish == "running")
    if connection.scalar(sa.select(turns.c.id).where(running).limit(1)) is not None:
        raise InputError(BEING_ANSWERED)


def change_summaries(
    connection: sa.Connection, conversation_id: str, own: Change, elsewhere: Change
) -> None:
    """Change all valid summaries of a conversation by `own`, those of its branches by `elsewhere`.

    Older ones as well: one of them is current again after a turn was edited.
    """
    for owner in family(connection, conversation_id):
        mine = sa.and_(summaries.c.conversation_id == owner, summaries.c.valid.is_(sa.true()))
        columns = (summaries.c.version, *SUMMARY_COLUMNS)
        rows = connection.execute(sa.select(*columns).where(mine)).all()
        change = own if owner == conversation_id else elsewhere
        for row in rows:
            old = summary_of(row)
            _rewrite(connection, owner, row.version, old, change(old))
        if owner == conversation_id and all(row.version != _BASE_VERSION for row in rows):
            _add_base(connection, owner, change(BASE))


def forget_turn(
    connection: sa.Connection,
    conversation_id: str,
    turn_id: str,
    *,
    change: Change,
    scrub: Scrub,
    scrub_notices: ScrubNotices,
) -> frozenset[str]:
    """Delete a turn, its other versions, and all that was made of it. Other turns keep their ids.

    Summaries and decisions that cover it go, of branches that follow it as well; the others are
    changed by `change`, and traces and notices of later turns by `scrub` and `scrub_notices`.
    Returns the names of documents that only messages which are gone now were attached as; traces
    and sources of the others no longer hold their text.
    """
    everyone = family(connection, conversation_id)
    attached = attached_names(connection, everyone)
    position = position_of(connection, conversation_id, turn_id)
    n_before = count_before(connection, conversation_id, position)
    titled = _is_title_of(connection, conversation_id, position)
    delete_branches_at(connection, conversation_id, position)
    connection.execute(sa.delete(turns).where(turns.c.id == turn_id))
    owners = followers(connection, conversation_id, position)
    covering = [_delete_covering(connection, owner, n_before) for owner in owners]
    for owner in owners:
        later = sa.and_(turns.c.conversation_id == owner, turns.c.position > position)
        scrub_traces(connection, later, lambda trace: scrub(trace, any(covering)))
        _scrub_notices(connection, later, scrub_notices)
    change_summaries(connection, conversation_id, change, change)
    if titled:
        _title_anew(connection, conversation_id)
    gone = attached - attached_names(connection, everyone)
    # Another version may have been told of it, so not only what follows the turn.
    forget_sources(connection, conversations.c.id.in_(everyone), gone)
    return gone


def _delete_covering(connection: sa.Connection, owner: str, n_before: int) -> bool:
    """Delete summaries and decisions about more than so many turns; whether there was one."""
    found = 0
    for table in (summaries, fold_decisions):
        mine = sa.and_(table.c.conversation_id == owner, table.c.covers > n_before)
        found += connection.execute(sa.delete(table).where(mine)).rowcount
    return found > 0


def _rewrite(
    connection: sa.Connection, owner: str, version: int, old: RollingSummary, new: RollingSummary
) -> None:
    if new != old:
        here = sa.and_(summaries.c.conversation_id == owner, summaries.c.version == version)
        connection.execute(sa.update(summaries).where(here).values(summary_row(new)))


def insert_base(connection: sa.Connection, conversation_id: str, summary: RollingSummary) -> None:
    """Keep what users did to the facts of a summary from elsewhere, so that it outlasts it."""
    own = tuple(f for f in summary.facts if f.pinned or f.edited or not f.turn_id)
    _add_base(connection, conversation_id, replace(BASE, facts=own, deleted=summary.deleted))


def _add_base(connection: sa.Connection, conversation_id: str, base: RollingSummary) -> None:
    if base != BASE:
        key = {"conversation_id": conversation_id, "version": _BASE_VERSION, "valid": True}
        connection.execute(sa.insert(summaries).values(summary_row(base) | key))


def _scrub_notices(
    connection: sa.Connection, which: sa.ColumnElement[bool], scrub: ScrubNotices
) -> None:
    rows = connection.execute(
        sa.select(turns.c.id, turns.c.notices).where(which, turns.c.notices.is_not(None))
    ).all()
    for row in rows:
        old = from_json(records.NOTICES, row.notices)
        if (new := scrub(old)) != old:
            values = {"notices": to_json_or_none(new)}
            connection.execute(sa.update(turns).where(turns.c.id == row.id).values(values))


def _is_title_of(connection: sa.Connection, conversation_id: str, position: int) -> bool:
    """Whether a conversation is called by the question in a place, or by another version of it."""
    mine = conversations.c.id == conversation_id
    title = connection.scalar(sa.select(conversations.c.title).where(mine))
    fork = sa.and_(
        conversations.c.branch_of == conversation_id, conversations.c.fork_position == position
    )
    owners = sa.select(conversations.c.id).where(sa.or_(mine, fork))
    here = sa.and_(turns.c.position == position, turns.c.conversation_id.in_(owners))
    asked = connection.scalars(sa.select(turns.c.user_messages).where(here))
    return bool(title) and any(title == _title_from(text) for text in asked)


def _title_anew(connection: sa.Connection, conversation_id: str) -> None:
    mine = turns.c.conversation_id == conversation_id
    chosen = sa.select(turns.c.user_messages).where(mine).order_by(turns.c.position).limit(1)
    title = _title_from(connection.scalar(chosen))
    called = sa.update(conversations).where(conversations.c.id == conversation_id)
    connection.execute(called.values(title_columns(title)))


def _title_from(user_messages: str | None) -> str:
    """The title that a question gives a conversation, as `title_columns` writes it."""
    asked = () if user_messages is None else from_json(records.MESSAGES, user_messages)
    return str(title_columns(title_from("\n\n".join(m.spoken for m in asked)))["title"])
