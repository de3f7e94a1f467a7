"""Which layer lost a fact: never stored, stored but not in the prompt, or not used by the model."""

from __future__ import annotations

from collections.abc import Iterator

from chatbot.regression.observation import Observation
from chatbot.regression.results import Layer
from chatbot.regression.rules import Assertion, Wanted


def lost_in(assertion: Assertion, seen: Observation) -> tuple[Layer, str]:
    """The layer, and where the fact is or was looked for; "" for what is no fact."""
    if not seen.answered:
        return "", ""
    for fact in assertion.facts:
        layer, where = _layer(fact, seen)
        if layer != "in the prompt but not used":
            return layer, where
        if assertion.name not in ("remembers", "recalls", "retrieves") and not fact.is_in(
            seen.turn.reply
        ):
            return layer, where
    return "", ""


def _layer(fact: Wanted, seen: Observation) -> tuple[Layer, str]:
    kinds = list(
        dict.fromkeys(
            s.kind for s in seen.trace.segments if s.kind != "question" and fact.is_in(s.text)
        )
    )
    if kinds:
        return "in the prompt but not used", f"{fact.name!r} stands in {', '.join(kinds)}"
    stored = list(_stored(fact, seen))
    if stored:
        shown = ", ".join(stored[:3])
        return "stored but not in the prompt", f"{fact.name!r} is in {shown}"
    return "never stored", f"{fact.name!r} is in no earlier turn, summary or document"


def _stored(fact: Wanted, seen: Observation) -> Iterator[str]:
    for number, turn in enumerate(seen.before.turns, start=1):
        if fact.is_in(turn.question) or fact.is_in(turn.reply):
            yield f"turn {number}"
    summary = seen.before.summary
    if summary is not None:
        if fact.is_in(summary.text):
            yield "the summary"
        if any(fact.is_in(one.text) for one in summary.facts):
            yield "the facts"
    for name, text in seen.documents().items():
        if fact.is_in(text):
            yield f"the document {name!r}"
