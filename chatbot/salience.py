"""How much of a sentence is specific, and whether it is a sentence at all. Pure; knows no turn."""

from __future__ import annotations

import re
from dataclasses import dataclass

from chatbot.figures import dates, numbers
from chatbot.frames import is_statement
from chatbot.line_values import names_day
from chatbot.proper_names import english_names, identifiers, korean_names
from chatbot.words import patterns

_PREFERENCE = patterns("preference")
_DECISION = patterns("decision")
_CORRECTION = patterns("correction")
_PERSONAL = patterns("personal")
_NOT_PROSE = re.compile(r"\s*(?:#|\||->|=>|>>>|\$ |//|/\*|<\w|@\w|\*{2}[^*]+\*{2}:?\s*$)")
_ITEM = re.compile(r"\s*(?:[-*•·]|\d{1,3}[.)])\s+")
_LETTER = re.compile(r"[^\W_]")
_CODE = re.compile(
    r"\w\(\w*\)|[{}]|==|\+=|=>|->|\w_\w+\s?=|^\s*\w+: \S+(?: \S+)?$|^(?:import|def|return|const)\s"
)
_QUESTION = re.compile(
    r"[?？]\s*$|(?:까요|(?<![끝만떠어타생지빛])(?<!\s)(?<!^)나요|은가요|ㄴ가요|습니까|줘|주세요|줄래|알려줘)[.!?]*\s*$"
)
_REQUEST = re.compile(
    r"\b(?:can|could|would) you\b|\bhelp me\b|\bhow (?:do|can|should) I\b|도와|알려\s*줘",
    re.IGNORECASE,
)
"""A task, not a fact: what it says is needed now and rarely later."""
_WEIGHTS = {"figure": 2.0, "name": 1.5, "preference": 2.0, "decision": 1.5, "correction": 2.5}


@dataclass(frozen=True, slots=True)
class Salience:
    """What a sentence holds that is worth keeping, and how much it weighs."""

    kinds: frozenset[str]
    weight: float


def salience(sentence: str) -> Salience:
    """How much of a sentence is specific: figures, names, preferences, decisions, corrections."""
    kinds: set[str] = set()
    if numbers(sentence) or identifiers(sentence) or dates(sentence) or names_day(sentence):
        kinds.add("figure")
    if english_names(sentence) or korean_names(sentence):
        kinds.add("name")
    for kind, pattern in (
        ("preference", _PREFERENCE),
        ("decision", _DECISION),
        ("correction", _CORRECTION),
    ):
        if pattern.search(sentence):
            kinds.add(kind)
    weight = sum(_WEIGHTS[kind] for kind in kinds)
    if not kinds and is_statement(sentence):
        weight = 1.0  # too little for the list, but a question may ask for it
    if _PERSONAL.search(sentence):
        weight += 1.0
    if _QUESTION.search(sentence):
        # "No, make it Thursday, please" asks for something, but says what holds from now on; "I
        # have 900 euros, is that enough?" does so too. Other questions state nothing.
        personal = _PERSONAL.search(sentence) and "figure" in kinds
        weight -= 1.0 if personal or "correction" in kinds else 2.0
    elif _REQUEST.search(sentence):
        weight -= 1.0
    return Salience(frozenset(kinds), max(0.0, weight))


def is_prose(line: str) -> bool:
    """Whether a line is a sentence rather than a heading, a table row, code or a bare label."""
    if _NOT_PROSE.match(line) or line.endswith((":", "：", "{", ";", ">")):
        return False
    letters = len(_LETTER.findall(line))
    if letters < 0.55 * len(line.replace(" ", "")) or _CODE.search(line):
        return False
    item = _ITEM.match(line)
    words = len(line[item.end() if item else 0 :].split())
    return words >= (4 if item else 2) or letters >= 8
