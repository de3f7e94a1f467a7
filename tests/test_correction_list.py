"""Wordings by which people correct themselves, and such that only look like it; a list in a file.

tests/data/corrections.jsonl holds lines of two kinds: {"context": NAME, "lines": [...]}, what was
said before; and {"context": NAME, "line": TEXT, "corrects": NUMBER of the line or null, "new": the
words that must be in the list of facts afterwards}. To extend it, add lines. The rules were written
with the contexts "open ..." and "fresh ..., first" in sight; "held ..." and "fresh ..., second"
were written first and only measured, but for one line of the latter: 동료의 회계사.
"""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from chatbot.facts import extract_facts
from chatbot.linking import linked
from chatbot.messages import Message, Turn

LIST = Path(__file__).parent / "data" / "corrections.jsonl"
LEAST = {"held en": 0.82, "held ko": 0.85, "open en": 0.9, "open ko": 0.8, "open ko, second": 0.8,
         "fresh en, first": 0.75, "fresh en, second": 0.6,
         "fresh ko, first": 0.9, "fresh ko, second": 0.75}  # fmt: skip
"""Shares of the corrections that must be linked with the line they correct."""
MOST_WRONG: dict[str, int] = {}
"""Of the others, so many may be linked with something; of contexts not named here none."""
LEAST_WEIGHT = 1.0


def read() -> tuple[dict[str, list[str]], dict[str, list[dict[str, Any]]]]:
    said: dict[str, list[str]] = {}
    cases: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for text in LIST.read_text(encoding="utf-8").splitlines():
        entry = json.loads(text)
        if "lines" in entry:
            said[entry["context"]] = entry["lines"]
        else:
            cases[entry["context"]].append(entry)
    return said, cases


SAID, CASES = read()


def turn(number: int, text: str) -> Turn:
    return Turn(f"t{number}", (Message(f"u{number}", "user", text),))


def corrected_by(line: str, said: list[str]) -> set[str]:
    """Ids of the turns that a line corrects, as facts are linked in a chat."""
    before = [
        fact
        for number, text in enumerate(said)
        for fact in extract_facts([turn(number, text)], least_weight=LEAST_WEIGHT)
    ]
    new = extract_facts([turn(99, line)], least_weight=LEAST_WEIGHT)
    return {found.replaces.turn_id for found in linked(new, before) if found.replaces}


@pytest.mark.parametrize("context", sorted(CASES))
def test_corrections_find_the_line_they_correct(context: str) -> None:
    cases = [case for case in CASES[context] if case["corrects"] is not None]
    missed = [
        case["line"]
        for case in cases
        if corrected_by(case["line"], SAID[context]) != {f"t{case['corrects']}"}
    ]
    assert 1 - len(missed) / len(cases) >= LEAST[context], missed


@pytest.mark.parametrize("context", sorted(CASES))
def test_what_corrects_nothing_takes_no_place(context: str) -> None:
    cases = [case for case in CASES[context] if case["corrects"] is None]
    wrong = [case["line"] for case in cases if corrected_by(case["line"], SAID[context])]
    assert len(wrong) <= MOST_WRONG.get(context, 0), wrong


def test_the_list_is_long_enough() -> None:
    for language in ("en", "ko"):
        held = CASES[f"held {language}"]
        assert sum(case["corrects"] is None for case in held) >= 15
        assert len(held) >= 40
