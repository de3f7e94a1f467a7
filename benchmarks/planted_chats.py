"""Long chats of real talk with facts planted in them; the facts lie in planted_facts.jsonl."""

from __future__ import annotations

import json
import random
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

LANGUAGES = ("en", "ko")
FACTS = Path(__file__).parent / "planted_facts.jsonl"
LONGEST_QUESTION, LONGEST_REPLY = 1_500, 4_000
"""Characters of a filler turn; longer ones are left out, not cut."""
_MARK = re.compile(r"\s*->->[\s\d,.]*$")
"""BEAM puts the place in its plan behind questions; nobody said that."""
Filler = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Planted:
    """A fact, and the question that needs it. `value` is the one that holds at the end."""

    kind: str
    said: str
    question: str
    value: str
    old: str = ""
    change: str | None = None
    """The sentence that corrects it later on."""


@dataclass(frozen=True, slots=True)
class Chat:
    """The turns of one chat, each a question and a reply, and what was planted in them."""

    name: str
    turns: tuple[Filler, ...]
    planted: tuple[Planted, ...]


def chats(data: Path, language: str, *, seeds: int, turns: int) -> Iterator[Chat]:
    """Two chats a seed: one with facts that stay, one in which each of them is corrected."""
    fillers = _english(data) if language == "en" else _korean(data)
    for seed in range(seeds):
        source = fillers[seed % len(fillers)]
        for corrected in (False, True):
            rng = random.Random(f"{language} {seed} {corrected}")
            yield _chat(f"{seed}{'c' if corrected else ''}", language, _drawn(rng, source, turns),
                        corrected, rng)  # fmt: skip


def _chat(
    name: str, language: str, filler: Sequence[Filler], corrected: bool, rng: random.Random
) -> Chat:
    planted = [
        _planted(kind, entries, corrected, rng) for kind, entries in _kinds(language).items()
    ]
    turns = [list(turn) for turn in filler]
    # The first two thirds, so that each fact is far back when it is asked for.
    places = sorted(rng.sample(range(2 * len(turns) // 3), len(planted)))
    for fact, place in zip(planted, places, strict=True):
        turns[place][0] = _beside(fact.said, turns[place][0], rng)
        if fact.change is not None:
            later = rng.randrange(place + 1, len(turns) - 4)
            turns[later][0] = _beside(fact.change, turns[later][0], rng)
    return Chat(name, tuple((user, reply) for user, reply in turns), tuple(planted))


def _kinds(language: str) -> dict[str, list[dict[str, Any]]]:
    kinds: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for line in FACTS.read_text(encoding="utf-8").splitlines():
        entry = json.loads(line)
        if entry["language"] == language:
            kinds[entry["kind"]].append(entry)
    return kinds


def _planted(
    kind: str, entries: Sequence[dict[str, Any]], corrected: bool, rng: random.Random
) -> Planted:
    entry = rng.choice(entries)
    old, new = rng.sample(entry["values"], 2)
    said = entry["said"].format(value=old)
    if not corrected:
        return Planted(kind, said, entry["question"], old)
    return Planted(kind, said, entry["question"], new, old, entry["change"].format(value=new))


def _beside(sentence: str, text: str, rng: random.Random) -> str:
    if rng.random() < 0.5:
        return f"{sentence} {text}"
    # Not every filler ends its last sentence; the next one begins a new paragraph then.
    return f"{text} {sentence}" if text.endswith((".", "!", "?")) else f"{text}\n\n{sentence}"


def _drawn(rng: random.Random, source: Sequence[Filler], turns: int) -> list[Filler]:
    """A stretch of the source from somewhere, begun again where it ends."""
    start = rng.randrange(len(source))
    return [source[(start + n) % len(source)] for n in range(turns)]


def _english(data: Path) -> list[list[Filler]]:
    """BEAM: questions and replies of people planning, studying and writing programs."""
    found = []
    for path in sorted((data / "memory" / "beam100k").glob("*.json")):
        messages = json.loads(path.read_text(encoding="utf-8"))["messages"]
        pairs = [
            (_MARK.sub("", a["content"]), b["content"])
            for a, b in pairwise(messages)
            if a["role"] == "user" and b["role"] == "assistant"
        ]
        found.append([pair for pair in pairs if _is_short(pair)])
    return _some(found, data)


def _korean(data: Path) -> list[list[Filler]]:
    """KorQuAD: questions, each answered with the paragraph that holds the answer."""
    folder = data / "qa" / "korquad1"
    if not folder.is_dir():
        return _some([], data)
    lines = (folder / "questions.jsonl").read_text(encoding="utf-8").splitlines()
    one_each: dict[str, Filler] = {}
    for line in lines:
        entry = json.loads(line)
        name = entry["gold"][0]["document"]
        reply = (folder / "documents" / name).read_text(encoding="utf-8").strip()
        one_each.setdefault(name, (entry["question"], reply))
    pairs = [pair for pair in one_each.values() if _is_short(pair)]
    return _some([pairs[n::10] for n in range(10)], data)


def _is_short(pair: Filler) -> bool:
    return len(pair[0]) <= LONGEST_QUESTION and len(pair[1]) <= LONGEST_REPLY


def _some(found: list[list[Filler]], data: Path) -> list[list[Filler]]:
    if not any(found):
        raise SystemExit(f"There is no talk to fill the chats with in {data}; see --data.")
    return [source for source in found if source]
