"""Stands in for a model that uses what its prompt holds: quotes the sentence that answers best.

So a scripted run fails when the program loses a fact on its way into the prompt. Pure.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import prompts
from chatbot.language import detect
from retrieval.sentences import sentences
from retrieval.words import content_terms, lexical_runs

ENOUGH = 0.51
"""Least share of the question's terms, by weight, that a sentence must hold to be quoted."""
UNKNOWN = {"ko": "모르겠습니다.", "en": "I do not know."}
NOTED = {"ko": "알겠습니다.", "en": "Noted."}
_ASKS = re.compile(r"[?？]\s*$|(?:까|나요|은가요|뭐야|줘|주세요|줄래)[.!]?\s*$")
_ASKING_WORDS = ("뭐", "무엇", "무슨", "얼마", "어디", "누구", "누가", "언제", "어느", "어떤", "몇")
_LEAD = re.compile(r"^(?:\[[^\]\n]{1,120}\]|[-*•])\s*")


@dataclass(frozen=True, slots=True)
class PromptMessage:
    """One message of a prompt, told apart by the template's own control ids."""

    role: str
    text: str


@dataclass(frozen=True, slots=True)
class _Quote:
    text: str
    terms: frozenset[str]
    rank: tuple[int, int]
    """Of equals, the highest is quoted: newer messages before older ones."""


def answer(question: str, messages: Sequence[PromptMessage]) -> str:
    """The best-matching sentence of the prompt, or that it is not known."""
    language = "ko" if detect(question) == "ko" else "en"
    if not _ASKS.search(question.strip()):
        return NOTED[language]
    asked = _korean_stems(question) if language == "ko" else content_terms(question)
    quotes = list(_quotes(question, messages))
    best = _best(asked, quotes)
    return best.text if best else UNKNOWN[language]


def _korean_stems(question: str) -> set[str]:
    """The first two syllables of each word: what follows may be a particle or an ending."""
    stems = (next((t for t in run if len(t) > 1), "") for run in lexical_runs(question))
    return {stem for stem in stems if stem and not stem.startswith(_ASKING_WORDS)}


def _best(asked: set[str], quotes: Sequence[_Quote]) -> _Quote | None:
    counts = Counter(term for quote in quotes for term in quote.terms & asked)
    weight = {term: math.log(1 + len(quotes) / max(1, counts[term])) for term in asked}
    total = sum(weight.values())
    if not total:
        return None

    def score(quote: _Quote) -> float:
        return round(sum(weight[term] for term in quote.terms & asked) / total, 2)

    best = max(quotes, key=lambda quote: (score(quote), quote.rank), default=None)
    return best if best is not None and score(best) >= ENOUGH else None


def _quotes(question: str, messages: Sequence[PromptMessage]) -> Iterator[_Quote]:
    last = len(messages) - 1
    for n, message in enumerate(messages):
        text = message.text
        place = n
        if message.role == "system":
            text = _after_label(text)
        elif n == last:
            # What was looked up for the question is older than the turns that stand before it.
            text, place = text.rpartition(question)[0], 0
        for position, sentence in enumerate(sentences(text)):
            plain = _LEAD.sub("", sentence.strip())
            if plain and not _ASKS.search(plain):
                yield _Quote(plain, frozenset(content_terms(plain)), (place, position))


def _after_label(text: str) -> str:
    """The summary behind the instructions."""
    for language in prompts.LANGUAGES:
        label = prompts.load("label_summary", language)
        if label in text:
            return text.rpartition(label)[2]
    return ""
