"""Turns, summaries and conversations as rows of tables and back. Runs no statement."""

from __future__ import annotations

import dataclasses
from collections.abc import Container
from typing import Any, TypeVar, cast

import sqlalchemy as sa

from chatbot import records
from chatbot.errors import InputError
from chatbot.messages import (
    Branch,
    Conversation,
    Finish,
    RollingSummary,
    SummaryOrigin,
    Turn,
)
from chatbot.records import from_json, new_id, storable, to_json_or_none
from chatbot.store_schema import summaries, turns
from chatbot.titles import fold_text, title_from

T = TypeVar("T")
Row = dict[str, Any]

MAX_ID_CHARACTERS = 255
"""PostgreSQL refuses an index entry of more than 2,700 bytes."""
MAX_COUNT = 2**31 - 1
MOST_SHARED_IDS = 1 << 18
"""As many as the largest vocabularies have."""
_SHARED_IDS: dict[int, int] = {}

TURN_COLUMNS = (
    turns.c.id,
    turns.c.finish,
    turns.c.created,
    turns.c.user_messages,
    turns.c.assistant_messages,
    turns.c.tokenizer_name,
    turns.c.reply_token_ids,
    turns.c.usage,
    turns.c.citations,
    turns.c.notices,
    turns.c.unsupported,
    turns.c.best_sentence,
)
SUMMARY_COLUMNS = (
    summaries.c.text,
    summaries.c.covers,
    summaries.c.tokens,
    summaries.c.facts,
    summaries.c.origin,
    summaries.c.created,
    summaries.c.kept,
    summaries.c.deleted,
)


def turn_row(turn: Turn) -> Row:
    """All columns that follow from the turn itself; its place and its runner do not."""
    return {
        "finish": turn.finish,
        "created": storable(turn.created),
        "user_messages": to_json_or_none(turn.user),
        "assistant_messages": to_json_or_none(turn.assistant),
        "tokenizer_name": turn.tokenizer_name and storable(turn.tokenizer_name),
        "reply_token_ids": to_json_or_none(turn.reply_token_ids),
        "usage": to_json_or_none(turn.usage),
        "citations": to_json_or_none(turn.citations),
        "notices": to_json_or_none(turn.notices),
        "unsupported": to_json_or_none(turn.unsupported),
        "best_sentence": to_json_or_none(turn.best_sentence),
        "folded_text": fold_text(storable(f"{turn.question}\n\n{turn.reply}")),
    }


def turn_of(row: sa.Row[*tuple[Any, ...]]) -> Turn:
    """Inverse of `turn_row`, out of TURN_COLUMNS. The trace is None: it is loaded by itself."""
    return Turn(
        id=row.id,
        user=_read(records.MESSAGES, row.user_messages, ()),
        assistant=_read(records.MESSAGES, row.assistant_messages, ()),
        citations=_read(records.CITATIONS, row.citations, ()),
        usage=_read(records.USAGE, row.usage, None),
        finish=cast(Finish, row.finish),
        created=row.created,
        reply_token_ids=_shared(_read(records.TOKEN_IDS, row.reply_token_ids, ())),
        tokenizer_name=row.tokenizer_name,
        notices=_read(records.NOTICES, row.notices, ()),
        unsupported=_read(records.TEXTS, row.unsupported, ()),
        best_sentence=_read(records.CITATION, row.best_sentence, None),
    )


def summary_row(summary: RollingSummary) -> Row:
    """All columns that follow from the summary itself."""
    return {
        "text": storable(summary.text),
        "covers": summary.covers,
        "tokens": summary.tokens,
        "facts": to_json_or_none(summary.facts),
        "origin": summary.origin,
        "created": storable(summary.created),
        "kept": storable(summary.kept),
        "deleted": to_json_or_none(summary.deleted),
    }


def summary_of(row: sa.Row[*tuple[Any, ...]]) -> RollingSummary:
    """Inverse of `summary_row`, out of SUMMARY_COLUMNS."""
    return RollingSummary(
        text=row.text,
        covers=row.covers,
        tokens=row.tokens,
        facts=records.with_fact_ids(_read(records.FACTS, row.facts, ())),
        origin=cast(SummaryOrigin, row.origin),
        created=row.created,
        kept=row.kept,
        deleted=_read(records.TEXTS, row.deleted, ()),
    )


def title_columns(title: str) -> Row:
    """A title on one line, and how search sees it."""
    shown = " ".join(storable(title).split())
    return {"title": shown, "folded_title": fold_text(shown)}


def imported(conversation: Conversation, *, taken: Container[str], now: str) -> Conversation:
    """A conversation from outside as it will be stored.

    Ids of messages, names and times stay, and the id of the conversation unless it is "" or too
    long. So do those of turns, but for each that is in `taken`, too long, or that an earlier turn
    has: it gets a fresh one, also where facts of the summary refer to it.
    Raises InputError for what a conversation cannot be.
    """
    check_importable(conversation)
    if not 0 < len(conversation.id) <= MAX_ID_CHARACTERS:
        conversation = dataclasses.replace(conversation, id=new_id())
    conversation = _with_free_turn_ids(conversation, taken)
    first = conversation.turns[0].question if conversation.turns else ""
    return dataclasses.replace(
        conversation,
        title=conversation.title or title_from(first),
        turns=tuple(_settled(turn) for turn in conversation.turns),
        branches=tuple(_fresh(branch) for branch in conversation.branches),
        created=conversation.created or now,
        updated=now,
    )


def check_id(name: str) -> None:
    """Raises InputError for an id that is too long for the index of a database."""
    if len(name) > MAX_ID_CHARACTERS:
        message = f"An id may have {MAX_ID_CHARACTERS} characters; choose a shorter one."
        raise InputError(message)


def check_importable(conversation: Conversation) -> None:
    """Raises InputError for a message id that occurs twice, or a summary of turns that are not."""
    seen: set[str] = set()
    for turn in conversation.turns:
        for message_id in turn.message_ids:
            if message_id in seen:
                message = (
                    f"The message id {message_id!r} occurs twice in this conversation; "
                    "give each message an id of its own."
                )
                raise InputError(message)
            seen.add(message_id)
    summary = conversation.summary
    if summary and not 0 <= summary.covers <= len(conversation.turns):
        message = (
            f"The summary stands for {summary.covers} turns, but the conversation has only "
            f"{len(conversation.turns)}; leave the summary out."
        )
        raise InputError(message)
    if summary and not 0 <= summary.tokens <= MAX_COUNT:
        raise InputError("The size of the summary is no number of tokens; leave the summary out.")
    if any(len(name) > MAX_ID_CHARACTERS for name in conversation.document_ids):
        raise InputError("The id of a document of the conversation is too long; leave it out.")
    if any(not 0 <= branch.at < len(conversation.turns) for branch in conversation.branches):
        raise InputError("A branch of the conversation begins after its end; leave it out.")


def _with_free_turn_ids(conversation: Conversation, taken: Container[str]) -> Conversation:
    """Of turns with the same id the first keeps it, and what refers to it means that one."""
    renamed: dict[str, str] = {}
    ids: list[str] = []
    for turn in conversation.turns:
        usable = turn.id and turn.id not in taken and len(turn.id) <= MAX_ID_CHARACTERS
        ids.append(turn.id if usable and turn.id not in renamed else new_id())
        renamed.setdefault(turn.id, ids[-1])
    turns = tuple(
        turn if turn.id == own else dataclasses.replace(turn, id=own)
        for turn, own in zip(conversation.turns, ids, strict=True)
    )
    summary = conversation.summary
    if summary:
        facts = tuple(
            dataclasses.replace(fact, turn_id=renamed.get(fact.turn_id, fact.turn_id))
            for fact in summary.facts
        )
        summary = dataclasses.replace(summary, facts=facts)
    return dataclasses.replace(conversation, turns=turns, summary=summary)


def _fresh(branch: Branch) -> Branch:
    """Branches may share their first turns, so each gets turns of its own."""
    turns = tuple(dataclasses.replace(_settled(turn), id=new_id()) for turn in branch.turns)
    return dataclasses.replace(branch, turns=turns)


def _settled(turn: Turn) -> Turn:
    """Nobody is running an imported turn."""
    return dataclasses.replace(turn, finish="interrupted") if turn.finish == "running" else turn


def _shared(ids: tuple[int, ...]) -> tuple[int, ...]:
    """The same ids, each number kept once for all turns: by themselves they take four times as
    much, and are most of what is kept of a turn."""
    if len(_SHARED_IDS) > MOST_SHARED_IDS:
        _SHARED_IDS.clear()
    known = _SHARED_IDS.setdefault
    return tuple([known(id_, id_) for id_ in ids])


def _read(adapter: Any, text: str | None, absent: T) -> T:
    return absent if text is None else cast(T, from_json(adapter, text))
