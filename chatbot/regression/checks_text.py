"""Assertions about what the model said. Knows nothing of prompts and memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, get_args

import regex

from chatbot.language import Language, detect
from chatbot.messages import Finish
from chatbot.regression import patterns
from chatbot.regression.faults import shown, unknown
from chatbot.regression.observation import Observation
from chatbot.regression.rules import (
    Bounds,
    Rule,
    Verdict,
    Wanted,
    a_text,
    bounds,
    texts,
)
from chatbot.regression.texts import excerpt, holds, plain

LANGUAGES: tuple[str, ...] = get_args(Language)
FINISHES = tuple(name for name in get_args(Finish) if name != "running")
SIMILAR_ENOUGH = 0.5


class Similar(NamedTuple):
    """A text, and how close the reply must be: cosine, in [0, 1]."""

    to: str
    least: float


def _said(seen: Observation) -> str:
    return f"the reply is {shown(excerpt(seen.turn.reply))[:200]}"


def fact(text: str) -> Wanted:
    """A fact that is a text."""
    return Wanted(text, lambda other: holds(other, text))


def _contains(seen: Observation, value: str) -> Verdict:
    return Verdict(holds(seen.turn.reply, value), _said(seen))


def _contains_any(seen: Observation, value: Sequence[str]) -> Verdict:
    return Verdict(any(holds(seen.turn.reply, text) for text in value), _said(seen))


def _contains_all(seen: Observation, value: Sequence[str]) -> Verdict:
    missing = [text for text in value if not holds(seen.turn.reply, text)]
    lacks = f", it lacks {', '.join(map(repr, missing))}" if missing else ""
    return Verdict(not missing, _said(seen) + lacks)


def _regex(seen: Observation, value: regex.Pattern[str]) -> Verdict:
    return Verdict(patterns.found(value, seen.turn.reply), _said(seen))


def _equals(seen: Observation, value: str) -> Verdict:
    return Verdict(plain(seen.turn.reply) == plain(value), _said(seen))


def _similar(seen: Observation, value: Similar) -> Verdict:
    if seen.similarity is None:
        raise ValueError("similar needs an embedding model; set embedding_model")
    score = seen.similarity(seen.turn.reply, value.to)
    return Verdict(score >= value.least, f"the similarity is {score:.2f}; {_said(seen)}")


def _language(seen: Observation, value: str) -> Verdict:
    language = detect(seen.turn.reply)
    return Verdict(language == value, f"the reply is in {language!r}: {excerpt(seen.turn.reply)!r}")


def _max_words(seen: Observation, value: Bounds) -> Verdict:
    words = len(seen.turn.reply.split())
    return Verdict(value.hold(words), f"the reply has {words} words")


def _finish(seen: Observation, value: str) -> Verdict:
    return Verdict(seen.turn.finish == value, f"the reply ended with {seen.turn.finish!r}")


def _read_similar(value: Any) -> Similar:
    if isinstance(value, str):
        return Similar(a_text(value), SIMILAR_ENOUGH)
    if not isinstance(value, dict) or set(value) - {"to", "min"} or "to" not in value:
        raise ValueError("a text, or a mapping of to and min")
    least = bounds("min", share=True)(value.get("min", SIMILAR_ENOUGH)).least
    if least is None or isinstance(value.get("min"), dict):
        raise ValueError("a mapping whose min is a number from 0 to 1")
    return Similar(a_text(value["to"]), least)


def one_of(what: str, known: Sequence[str]) -> Any:
    """A reader that takes one of these words."""

    def read(value: Any) -> str:
        if not isinstance(value, str) or value not in known:
            raise ValueError(f"one of {', '.join(known)} ({unknown(what, str(value), known)})")
        return value

    return read


def _read_regex(value: Any) -> regex.Pattern[str]:
    return patterns.compiled(a_text(value))


TEXT_RULES: dict[str, Rule] = {
    "contains": Rule("said", a_text, _contains, lambda value: [fact(value)]),
    "contains-any": Rule(
        "said", texts, _contains_any,
        lambda value: [Wanted(" or ".join(value), lambda text: any(holds(text, v) for v in value))],
    ),
    "contains-all": Rule("said", texts, _contains_all, lambda value: [fact(v) for v in value]),
    "regex": Rule(
        "said", _read_regex, _regex,
        lambda value: [Wanted(value.pattern, lambda text: patterns.found(value, text))],
    ),
    "equals": Rule("said", a_text, _equals, lambda value: [fact(value)]),
    "similar": Rule("said", _read_similar, _similar),
    "language": Rule("said", one_of("language", LANGUAGES), _language),
    "max-words": Rule("said", bounds("max"), _max_words),
    "finish": Rule("said", one_of("finish", FINISHES), _finish),
}  # fmt: skip
