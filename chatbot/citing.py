"""Which passages support a reply: worked out by program, not asked of the model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from chatbot.messages import Turn
from retrieval.align import align, best_sentence
from retrieval.context import LabelledPassage


def cite(turn: Turn, passages: Sequence[LabelledPassage]) -> Turn:
    """The turn with its sources, unsupported statements and the best-matching sentence."""
    citations, unsupported = align(turn.reply, passages, turn.question)
    best = best_sentence(turn.question, passages)
    return replace(turn, citations=citations, unsupported=unsupported, best_sentence=best)
