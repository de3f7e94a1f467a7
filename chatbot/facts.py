"""Short verbatim lines of the user that are worth keeping, each with its turn. Pure.

Knows no summary and no model. What falls out of the list stays findable by recall.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from chatbot.figures import dates, number_forms, numbers
from chatbot.messages import Fact, Message, Turn
from chatbot.proper_names import english_names, identifiers, korean_names
from chatbot.words import patterns
from retrieval.sentences import sentences
from retrieval.types import CountTokens
from retrieval.words import content_terms

MAX_FACT_CHARACTERS = 160
ELLIPSIS = "…"

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
    r"[?？]\s*$|(?:까요|나요|은가요|ㄴ가요|습니까|줘|주세요|줄래|알려줘)[.!?]*\s*$"
)
_CLAUSE_END = re.compile(r"[,;:)](?=\s)|\s[–—-]\s|(?<=고|며|서|데|만)(?=\s)")
FENCED = re.compile(r"```.*?(?:```|\Z)|~~~.*?(?:~~~|\Z)", re.DOTALL)
"""A block of code, open or closed."""
_WEIGHTS = {"figure": 2.0, "name": 1.5, "preference": 2.0, "decision": 1.5, "correction": 2.5}
_LEAST_WEIGHT = 2.0


@dataclass(frozen=True, slots=True)
class Salience:
    """What a sentence holds that is worth keeping, and how much it weighs."""

    kinds: frozenset[str]
    weight: float


def salience(sentence: str) -> Salience:
    """How much of a sentence is specific: figures, names, preferences, decisions, corrections."""
    kinds: set[str] = set()
    if numbers(sentence) or identifiers(sentence) or dates(sentence):
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
    if _PERSONAL.search(sentence):
        weight += 1.0
    if _QUESTION.search(sentence):
        weight -= 1.0 if "figure" in kinds else 2.0
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


def extract_facts(turns: Sequence[Turn]) -> tuple[Fact, ...]:
    """The facts that users state in these turns, in their order and in their words."""
    found: dict[str, Fact] = {}
    for turn in turns:
        for message in turn.user:
            for line in _lines(message):
                fact = Fact(line, turn.id, message.id)
                found.setdefault(_key(line), fact)
    return tuple(found.values())


def merge_facts(
    old: Sequence[Fact], new: Sequence[Fact], *, cap_tokens: int, count_tokens: CountTokens
) -> tuple[Fact, ...]:
    """Old and new facts within a cap, oldest first.

    A new line that says the same with another figure takes the place of the old one. Pinned
    facts always stay; of the others the weightiest do, among equals the newest.
    """
    merged = list(old)
    for fact in new:
        merged = [kept for kept in merged if kept.pinned or not _replaces(fact, kept)]
        if all(_key(fact.text) != _key(kept.text) for kept in merged):
            merged.append(fact)
    order = sorted(
        range(len(merged)),
        key=lambda i: (merged[i].pinned, salience(merged[i].text).weight, i),
        reverse=True,
    )
    kept_indices: set[int] = set()
    left_tokens = cap_tokens
    for index in order:
        tokens = count_tokens(f"- {merged[index].text}\n")
        if merged[index].pinned or tokens <= left_tokens:
            kept_indices.add(index)
            left_tokens -= tokens
    return tuple(merged[index] for index in sorted(kept_indices))


def shortened(sentence: str, max_characters: int) -> str:
    """A long sentence up to its last clause that fits, marked with an ellipsis.

    The rest is word for word. Without a clause end in reach the cut is at a space.
    """
    if len(sentence) <= max_characters:
        return sentence
    head = sentence[: max_characters - 2]
    cuts = [match.end() for match in _CLAUSE_END.finditer(head) if match.end() > len(head) // 3]
    cut = cuts[-1] if cuts else head.rfind(" ")
    return head[: cut if cut > 0 else len(head)].rstrip(" ,;:–—-") + " " + ELLIPSIS


def _lines(message: Message) -> list[str]:
    lines: list[str] = []
    for sentence in sentences(FENCED.sub("\n\n", message.content)):
        line = " ".join(sentence.split())
        if is_prose(line) and salience(line).weight >= _LEAST_WEIGHT and content_terms(line):
            lines.append(shortened(line, MAX_FACT_CHARACTERS))
    return lines


def _key(line: str) -> str:
    return " ".join(line.casefold().strip(" .!?…").split())


def _replaces(new: Fact, old: Fact) -> bool:
    """Whether two lines say the same about the same thing, but with other figures."""
    mine, theirs = content_terms(new.text), content_terms(old.text)
    figures = number_forms(new.text), number_forms(old.text)
    if figures[0] == figures[1] or not (figures[0] and figures[1]):
        return False
    mine = {term for term in mine if not term.isdigit()}
    theirs = {term for term in theirs if not term.isdigit()}
    if len(theirs) < 2:
        return False
    shared = len(mine & theirs)
    return shared >= 0.8 * len(theirs) and shared >= 0.8 * len(mine)
