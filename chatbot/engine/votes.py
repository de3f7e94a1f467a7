"""Which of several short answers most agree on; texts in, a number out."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

_IGNORED = " \t\n\"'`*_“”‘’.,;:!?()[]。、，！？"
"""At the ends of an answer these say nothing about what it is."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer that won, by its place, and how many of all gave it."""

    winner: int
    agreed: int


def majority(answers: Sequence[str | None]) -> Verdict:
    """The commonest answer; of several as common, the one that came first.

    Answers that differ in case, spaces and punctuation around them are the same. None stands for
    no answer and never wins. Raises ValueError when there is none at all.
    """
    same = [None if answer is None else normalised(answer) for answer in answers]
    counts = Counter(answer for answer in same if answer is not None)
    if not counts:
        raise ValueError("no answers to choose from")
    # Counter keeps the order in which answers came, and `max` takes the first of the largest.
    best = max(counts, key=lambda answer: counts[answer])
    return Verdict(same.index(best), counts[best])


def normalised(answer: str) -> str:
    """An answer without what does not matter when two of them are compared."""
    plain = unicodedata.normalize("NFKC", answer).casefold()
    return " ".join(plain.strip(_IGNORED).split())
