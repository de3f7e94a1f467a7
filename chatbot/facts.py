"""Short verbatim lines of the user that are worth keeping, each with its turn. Pure.

Knows no summary and no model. What falls out of the list stays findable by recall.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import prompts
from chatbot.line_values import MOVABLE, changed_values, keys
from chatbot.messages import Fact, Message, Turn
from chatbot.records import fact_id
from chatbot.salience import is_prose, salience
from chatbot.subjects import shares_subject, value_clause
from retrieval.sentences import sentences, split_sentences
from retrieval.types import CountTokens
from retrieval.words import content_terms

MAX_FACT_CHARACTERS = 160
MAX_EARLIER_CHARACTERS = 110
ELLIPSIS = "…"
STEP = " → "
"""Between the lines of a chain of corrections."""

_CLAUSE_END = re.compile(r"[,;:)](?=\s)|\s[–—-]\s|(?<=고|며|서|데|만)(?=\s)")
FENCED = re.compile(r"```.*?(?:```|\Z)|~~~.*?(?:~~~|\Z)", re.DOTALL)
"""A block of code, open or closed."""
LEAST_WEIGHT = 2.0
LEAST_ASKED_FOR = 1.0
"""Of lines that are no fact of the list, but may be asked for or corrected later on."""
_CORRECTED_WEIGHT = 2.0
_MOST_PARTS = 40
"""Of a sentence that is too long for a line, so many parts are looked at."""
_LEAST_COST = 12
"""Tokens that a line counts for at least, so that crumbs do not win by being short."""


@dataclass(frozen=True, slots=True)
class Found:
    """A fact that was found in a turn, and the earlier one whose place it takes."""

    fact: Fact
    replaces: Fact | None = None


def extract_facts(turns: Sequence[Turn], *, least_weight: float = LEAST_WEIGHT) -> tuple[Fact, ...]:
    """The facts that users state in these turns, in their order and in their words."""
    found: dict[str, Fact] = {}
    for turn in turns:
        for message in turn.user:
            for line in _lines(message.content, least_weight):
                fact = Fact(line, turn.id, message.id, id=fact_id(message.id, line))
                found.setdefault(_key(line), fact)
    return tuple(found.values())


def merge_facts(
    old: Sequence[Fact],
    new: Sequence[Found],
    *,
    cap_tokens: int,
    count_tokens: CountTokens,
    deleted: Sequence[str] = (),
) -> tuple[Fact, ...]:
    """Old and new facts within a cap, oldest first; corrections take the place of earlier lines.

    Pinned facts and those in the user's own wording always stay; of the others the weightiest do,
    among equals the newest. Facts whose id is in `deleted` do not come back.
    """
    merged = list(old)
    for found in new:
        fact, corrected = found.fact, found.replaces
        if fact.id in deleted or any(fact.id == f.id for f in merged if f.edited):
            continue
        if corrected is not None:
            merged = [f for f in merged if _stays(f) or _key(f.text) != _key(corrected.text)]
        if all(_key(fact.text) != _key(kept.text) for kept in merged):
            merged.append(fact)
    return _within(merged, cap_tokens, count_tokens)


def fact_line(fact: Fact, language: str) -> str:
    """The fact as the model reads it: with what it was before, if it is a correction."""
    note = fact_note(fact, language)
    return f"{fact.text} ({note})" if note else fact.text


def fact_note(fact: Fact, language: str) -> str:
    """What the line was before; "" if it is no correction."""
    if not fact.earlier:
        return ""
    last = fact.earlier.rsplit(STEP, 1)[-1]
    old, new = changed_values(fact.text, last)
    notes = []
    if old:
        name = "fact_moved" if MOVABLE.search(last) else "fact_changed"
        shown = f"{new}{_direction(new)}" if language == "ko" else new
        notes.append(prompts.load(name, language, old=old, new=shown))
    told = not old or STEP in fact.earlier or not shares_subject(fact.text, last)
    if told or keys(last) - keys(value_clause(last, old)) - keys(fact.text):
        # What the line says beside the value holds on.
        notes.append(prompts.load("fact_before", language, earlier=fact.earlier))
    return "; ".join(notes)


def fact_spans(turn: Turn, fact: Fact) -> tuple[Message, int, int] | None:
    """The message that a fact was found in, and from where to where, in characters."""
    for message in turn.user:
        if message.id == fact.message_id:
            text = FENCED.sub(lambda found: "\n" * len(found.group()), message.content)
            for start, end in split_sentences(text):
                if telling_part(" ".join(text[start:end].split())) == fact.text:
                    return message, start, end
    return None


def _stays(fact: Fact) -> bool:
    return fact.pinned or fact.edited


def _within(facts: Sequence[Fact], cap_tokens: int, count_tokens: CountTokens) -> tuple[Fact, ...]:
    costs = [count_tokens(f"- {fact_line(fact, 'en')}\n") for fact in facts]
    # Many short lines say more than few long ones.
    values = [
        _weight(fact) / max(_LEAST_COST, cost) ** 0.5
        for fact, cost in zip(facts, costs, strict=True)
    ]
    order = sorted(range(len(facts)), key=lambda i: (_stays(facts[i]), values[i], i), reverse=True)
    kept_indices: set[int] = set()
    left_tokens = cap_tokens
    for index in order:
        tokens = costs[index]
        if _stays(facts[index]) or tokens <= left_tokens:
            kept_indices.add(index)
            left_tokens -= tokens
    return tuple(facts[index] for index in sorted(kept_indices))


def _weight(fact: Fact) -> float:
    """Corrections weigh more: without them the value that holds no longer is what is found."""
    return salience(fact.text).weight + (_CORRECTED_WEIGHT if fact.earlier else 0.0)


def _direction(word: str) -> str:
    """The Korean particle for "to" behind a word: 로 after a vowel or ㄹ, else 으로."""
    last = word.rstrip(" .!?)\"'”’")[-1:]
    if not "가" <= last <= "힣":
        return "(으)로"
    final = (ord(last) - ord("가")) % 28
    return "로" if final in (0, 8) else "으로"


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


def telling_part(sentence: str) -> str:
    """A sentence as a line of facts: its front, or where that tells nothing, a part that does."""
    front = shortened(sentence, MAX_FACT_CHARACTERS)
    if front == sentence or salience(front).weight >= LEAST_ASKED_FOR:
        return front
    size = MAX_FACT_CHARACTERS - 2
    starts = [m.end() for m in re.finditer(r"\s", sentence) if m.end() > size // 2]
    for start in starts[:: max(1, len(starts) // _MOST_PARTS)]:
        part = f"{ELLIPSIS} {shortened(sentence[start:], size)}"
        if salience(part).weight >= LEAST_WEIGHT:
            return part
    return front


@lru_cache(maxsize=8192)
def _lines(content: str, least_weight: float) -> tuple[str, ...]:
    lines: list[str] = []
    for sentence in sentences(FENCED.sub("\n\n", content)):
        line = " ".join(sentence.split())
        if is_prose(line) and salience(line).weight >= least_weight and content_terms(line):
            lines.append(telling_part(line))
    return tuple(lines)


def _key(line: str) -> str:
    return " ".join(line.casefold().strip(" .!?…").split())
