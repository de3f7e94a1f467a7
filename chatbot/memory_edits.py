"""What the user's hands do to a summary and its facts. Pure; knows no store and no model."""

from __future__ import annotations

from dataclasses import replace

from chatbot.errors import InputError
from chatbot.messages import Fact, RollingSummary
from chatbot.records import new_id, now_text, storable

MAX_OWN_FACT_CHARACTERS = 400
GONE = "That fact is no longer in the list; reload the page."


def rewritten(summary: RollingSummary, text: str, tokens: int) -> RollingSummary:
    """The summary in the user's words; "" takes them, and all other words, out of it."""
    return replace(
        summary, text=text, kept=text, tokens=tokens, origin="edited", created=now_text()
    )


def own_fact(text: str) -> Fact:
    """A line that the user adds. Raises InputError for one that is empty or too long."""
    return Fact(fact_text(text), "", "", id=f"u{new_id()[:16]}", edited=True)


def fact_text(text: str) -> str:
    """A line of the fact list. Raises InputError for one that is empty or too long."""
    line = " ".join(storable(text).split())
    if not line:
        raise InputError("The fact is empty; write one, or delete it.")
    if len(line) > MAX_OWN_FACT_CHARACTERS:
        message = f"A fact may have {MAX_OWN_FACT_CHARACTERS} characters; write it shorter."
        raise InputError(message)
    return line


def find_fact(summary: RollingSummary | None, fact_id: str) -> Fact:
    """The fact of this id. Raises InputError if it is not there."""
    for fact in summary.facts if summary else ():
        if fact.id == fact_id:
            return fact
    raise InputError(GONE)


def with_fact(summary: RollingSummary, fact: Fact) -> RollingSummary:
    """The summary with this fact: in the place of the one with its id, else as the last."""
    if all(old.id != fact.id for old in summary.facts):
        return replace(summary, facts=(*summary.facts, fact))
    return with_known_fact(summary, fact)


def with_known_fact(summary: RollingSummary, fact: Fact) -> RollingSummary:
    """The summary with this fact in the place of the one with its id, if it has one."""
    facts = tuple(fact if old.id == fact.id else old for old in summary.facts)
    return replace(summary, facts=facts)


def without_fact(summary: RollingSummary, fact_id: str) -> RollingSummary:
    """The summary without this fact, now and after later folds."""
    facts = tuple(old for old in summary.facts if old.id != fact_id)
    deleted = tuple(dict.fromkeys((*summary.deleted, fact_id)))
    return replace(summary, facts=facts, deleted=deleted)
