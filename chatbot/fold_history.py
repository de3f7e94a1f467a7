"""What the stored decisions of earlier folds say of the next one, also after a restart. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime

from chatbot.fold_plan import FoldBackoff
from chatbot.fold_run import NOT_ASKED
from chatbot.fold_types import refusal_notice
from chatbot.messages import FoldDecision, Notice


def backoff_of(decisions: Iterable[FoldDecision]) -> FoldBackoff:
    """The state that these decisions, oldest first, have led to."""
    state, refused = FoldBackoff(), False
    for decision in decisions:
        if decision.accepted and decision.origin == "model":
            state, refused = FoldBackoff(), False
        elif decision.origin == "extractive":
            state, refused = state.after(asked=refused, accepted=False), False
        elif _is_not_asked(decision):
            refused = False  # What follows is no answer to the retry; that is still to come.
        elif not decision.accepted:
            state, refused = replace(state, strict=True), True
    return state


def untold_refusal(decisions: Sequence[FoldDecision], newest_turn: str) -> Notice | None:
    """The notice for a summary that was refused after the newest turn began, in ISO 8601.

    What was refused before it was told with that turn.
    """
    begun = _moment(newest_turn)
    for decision in reversed(decisions):
        at = _moment(decision.created)
        if begun is None or at is None or at < begun.replace(microsecond=0):
            return None
        if not decision.accepted and not _is_not_asked(decision):
            return refusal_notice(decision)
    return None


def _is_not_asked(decision: FoldDecision) -> bool:
    return any(reason.startswith(NOT_ASKED) for reason in decision.reasons)


def _moment(text: str) -> datetime | None:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return found if found.tzinfo is not None else None
