"""What becomes of a summary and of traces when a turn is forgotten. Pure; calls no model."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from chatbot.extractive import extractive_summary
from chatbot.facts import STEP
from chatbot.messages import (
    Conversation,
    Dropped,
    Fact,
    Notice,
    PromptTrace,
    RollingSummary,
    Segment,
    Turn,
)
from chatbot.records import now_text
from retrieval.sentences import sentences
from retrieval.types import CountTokens
from retrieval.words import content_terms

REFUSED = "summary_refused"


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
        others[start : summary.covers - 1],
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
    trace: PromptTrace, message_ids: Collection[str], *, summaries: bool = False
) -> PromptTrace:
    """A trace of a later turn without the words of these messages; all sizes stay.

    `summaries`: those in the prompt may hold them as well. The query may have borrowed words.
    """

    def blank(segment: Segment) -> Segment:
        holds = not set(message_ids).isdisjoint(segment.message_ids)
        holds = holds or (summaries and segment.kind == "summary")
        return replace(segment, text="") if holds else segment

    return replace(
        trace,
        segments=tuple(blank(segment) for segment in trace.segments),
        dropped=tuple(Dropped(blank(d.segment), d.reason) for d in trace.dropped),
        query=trace.question if trace.query else "",
        notices=without_refusals(trace.notices),
    )


def without_refusals(notices: Sequence[Notice]) -> tuple[Notice, ...]:
    """Notices without those about refused summaries: their reasons quote what was said."""
    return tuple(notice for notice in notices if notice.code != REFUSED)


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
