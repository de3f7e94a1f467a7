"""Statements about summaries and how they came to be. Begins no transaction."""

from __future__ import annotations

from collections.abc import Sequence

import sqlalchemy as sa

from chatbot import records
from chatbot.messages import FoldDecision, RollingSummary
from chatbot.records import from_json, to_json
from chatbot.store_rows import SUMMARY_COLUMNS, summary_of, summary_row
from chatbot.store_schema import conversations, fold_decisions, summaries, turns

# Every question runs it: building a statement takes as long as running it.
_NEWEST = (
    sa.select(*SUMMARY_COLUMNS)
    .where(summaries.c.conversation_id == sa.bindparam("chat"), summaries.c.valid.is_(sa.true()))
    .order_by(summaries.c.version.desc())
    .limit(1)
)


def turn_at(connection: sa.Connection, conversation_id: str, number: int) -> str | None:
    """The id of a turn by its number, which counts from 0; places may have gaps."""
    if number < 0:
        return None
    mine = turns.c.conversation_id == conversation_id
    chosen = sa.select(turns.c.id).where(mine).order_by(turns.c.position)
    return connection.scalar(chosen.offset(number).limit(1))


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


def current_summary(
    connection: sa.Connection, conversation_id: str, *, most_turns: int | None = None
) -> RollingSummary | None:
    chosen = _NEWEST if most_turns is None else _NEWEST.where(summaries.c.covers <= most_turns)
    row = connection.execute(chosen, {"chat": conversation_id}).first()
    return None if row is None else summary_of(row)
