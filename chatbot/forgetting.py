"""What becomes of a summary and of traces when a turn is forgotten. Pure; calls no model."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

from chatbot.extractive import extractive_summary
from chatbot.facts import STEP
from chatbot.messages import (
    Conversation,
    Fact,
    Notice,
    RollingSummary,
    Turn,
)
from chatbot.records import now_text
from retrieval.sentences import sentences
from retrieval.types import CountTokens
from retrieval.words import content_terms

REFUSED = "summary_refused"
MAX_REBUILT_TURNS = 120
"""A summary holds some ten sentences; to weigh those of thousands of turns takes minutes."""


def without_turn(
    conversation: Conversation,
    turn: Turn,
    *,
    older: RollingSummary | None,
    cap_tokens: int,
    count_tokens: CountTokens,
    language: str,
) -> RollingSummary | None:
    """The summary that takes the place of one that covers `turn`; None if it does not.

    A model may have put the words of the turn anywhere, so nothing of its text is used: `older`,
    which covers no turn from this one on, is followed by sentences of the other turns. Of what
    the user wrote, the sentences stay that hold no word which only the forgotten turn has.
    """
    summary = conversation.summary
    ids = [other.id for other in conversation.turns]
    if summary is None or ids.index(turn.id) >= summary.covers:
        return None
    others = [other for other in conversation.turns if other.id != turn.id]
    kept = _without_words_of(summary.kept, turn, others)
    start = older.covers if older else 0
    text = extractive_summary(
        _spread(others[start : summary.covers - 1], MAX_REBUILT_TURNS),
        cap_tokens=max(cap_tokens - count_tokens(kept), cap_tokens // 4),
        count_tokens=count_tokens,
        language=language,
        previous=older.text.removeprefix(older.kept).strip() if older else "",
    )
    whole = "\n".join(part for part in (kept, text) if part)
    return replace(
        without_facts_of(summary, turn),
        text=whole,
        kept=kept,
        covers=summary.covers - 1,
        tokens=count_tokens(whole),
        origin="extractive",
        created=now_text(),
    )


def without_facts_of(summary: RollingSummary, turn: Turn) -> RollingSummary:
    """The summary without facts of a turn, and without values of it that were corrected later."""
    said = " ".join(turn.question.split())
    facts = tuple(_blank_earlier(f, said) for f in summary.facts if f.turn_id != turn.id)
    return summary if facts == summary.facts else replace(summary, facts=facts)


def scrubbed(
    trace: dict[str, Any], message_ids: Collection[str], *, summaries: bool = False
) -> dict[str, Any]:
    """A trace of a later turn, as its JSON object, without the words of these messages.

    All sizes stay. `summaries`: those in the prompt may hold the words as well. The query may have
    borrowed words, and reasons of refused summaries quote them.
    """
    wanted = frozenset(message_ids)

    def blank(segment: dict[str, Any]) -> dict[str, Any]:
        holds = not wanted.isdisjoint(segment.get("message_ids") or ())
        holds = holds or (summaries and segment["kind"] == "summary")
        return segment | {"text": ""} if holds else segment

    return trace | {
        "segments": [blank(segment) for segment in trace["segments"]],
        "dropped": [d | {"segment": blank(d["segment"])} for d in trace.get("dropped", ())],
        "query": trace["question"] if trace.get("query") else "",
        "notices": [n for n in trace.get("notices", ()) if n["code"] != REFUSED],
    }


def without_refusals(notices: Sequence[Notice]) -> tuple[Notice, ...]:
    """Notices without those about refused summaries: their reasons quote what was said."""
    return tuple(notice for notice in notices if notice.code != REFUSED)


def _spread(turns: Sequence[Turn], most: int) -> list[Turn]:
    """At most so many of the turns, from all parts of the chat."""
    if len(turns) <= most:
        return list(turns)
    return [turns[n * len(turns) // most] for n in range(most)]


def _blank_earlier(fact: Fact, said: str) -> Fact:
    kept = [line for line in fact.earlier.split(STEP) if line.rstrip(" …") not in said]
    return replace(fact, earlier=STEP.join(kept))


def _without_words_of(text: str, turn: Turn, others: Sequence[Turn]) -> str:
    if not text:
        return ""
    theirs: set[str] = set()
    for other in others:
        theirs |= content_terms(f"{other.question}\n{other.reply}")
    only = content_terms(f"{turn.question}\n{turn.reply}") - theirs
    return " ".join(s.strip() for s in sentences(text) if only.isdisjoint(content_terms(s)))
