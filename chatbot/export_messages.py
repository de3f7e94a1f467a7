"""Our own export of a chat, and the parts of it that a plain list of messages lacks.

Knows no file and no database. Other programs can read the list under "messages"; what only we
know of a turn stands apart, under "turns", and refers to messages by their ids.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from pydantic import TypeAdapter, ValidationError

from chatbot.errors import InputError
from chatbot.messages import Conversation, FoldDecision, Message, RollingSummary, Turn
from chatbot.records import FOLD_DECISIONS, SUMMARY, storable, to_plain, with_fact_ids
from chatbot.written_times import read_time

_TURN = TypeAdapter(Turn)
# These stand under "messages".
_ELSEWHERE = ("user", "assistant")
_MOST_TOKENS = 2**31


def export_conversation(conversation: Conversation) -> dict[str, Any]:
    """All of a conversation as JSON data; `import_messages.parse_messages` is the inverse.

    Texts come out storable: a lone surrogate, which no file can hold, as U+FFFD.
    """
    messages = [m for turn in conversation.turns for m in (*turn.user, *turn.assistant)]
    exported: dict[str, Any] = to_plain(
        {
            "id": conversation.id,
            "title": conversation.title,
            "system": conversation.system_text,
            "created": conversation.created,
            "updated": conversation.updated,
            "document_ids": conversation.document_ids,
            "summary": conversation.summary,
            "messages": messages,
            "turns": [_turn_alone(turn) for turn in conversation.turns],
            "fold_decisions": conversation.decisions,
        }
    )
    return exported


def read_turns(items: object, messages: Sequence[Message]) -> tuple[Turn, ...]:
    """The turns of an export, filled with its messages. Raises InputError that names the turn."""
    if not isinstance(items, list):
        raise InputError("'turns' is not a list; leave it out to group the messages afresh.")
    turns = []
    rest = list(messages)
    for n, item in enumerate(items):
        ids = item.get("message_ids") if isinstance(item, dict) else None
        if not isinstance(ids, list):
            raise InputError(f"turns[{n}] has no list 'message_ids'; leave 'turns' out.")
        mine, rest = rest[: len(ids)], rest[len(ids) :]
        if [storable(str(one)) for one in ids] != [m.id for m in mine]:
            message = f"turns[{n}] does not name the messages that come next; leave 'turns' out."
            raise InputError(message)
        turns.append(_read_turn(item, mine, f"turns[{n}]"))
    if rest:
        raise InputError(f"No turn names the message {rest[0].id!r}; leave 'turns' out.")
    return tuple(turns)


def read_summary(item: object, n_turns: int) -> RollingSummary | None:
    """The summary of an export. Raises InputError if it cannot belong to so many turns."""
    if item is None:
        return None
    summary: RollingSummary = _validated(SUMMARY, to_plain(item), "summary")
    if not 0 <= summary.covers <= n_turns:
        message = f"'summary' covers {summary.covers} turns of {n_turns}; leave it out."
        raise InputError(message)
    if not 0 <= summary.tokens < _MOST_TOKENS:
        raise InputError("'summary' has an impossible number of tokens; leave it out.")
    created = read_time(summary.created) or ""
    return replace(summary, created=created, facts=with_fact_ids(summary.facts))


def read_decisions(item: object) -> tuple[FoldDecision, ...]:
    """The decisions of folds in an export. Raises InputError that names what is wrong."""
    if item is None:
        return ()
    found: tuple[FoldDecision, ...] = _validated(FOLD_DECISIONS, to_plain(item), "fold_decisions")
    return tuple(replace(one, created=read_time(one.created) or "") for one in found)


def _turn_alone(turn: Turn) -> dict[str, Any]:
    alone: dict[str, Any] = {"id": turn.id, "message_ids": turn.message_ids}
    alone |= {k: v for k, v in to_plain(turn).items() if k not in (*_ELSEWHERE, "trace")}
    return alone if turn.trace is None else alone | {"trace": turn.trace}


def _read_turn(item: dict[str, Any], messages: Sequence[Message], place: str) -> Turn:
    sides = {
        "user": tuple(m for m in messages if m.role != "assistant"),
        "assistant": tuple(m for m in messages if m.role == "assistant"),
    }
    turn: Turn = _validated(_TURN, to_plain(item) | sides, place)
    turn = replace(turn, created=read_time(turn.created) or "")
    if turn.message_ids != tuple(m.id for m in messages):
        message = f"{place} has an answer before its question; leave 'turns' out."
        raise InputError(message)
    return turn


def _validated(adapter: TypeAdapter[Any], plain: object, place: str) -> Any:
    try:
        return adapter.validate_python(plain)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join([place, *(str(part) for part in first["loc"])])
        raise InputError(f"{where} is not as an export has it: {first['msg']}.") from error
