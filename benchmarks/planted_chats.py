"""Long chats of real talk with facts planted in them; the facts lie in planted_*.jsonl."""

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
FACTS = {
    "first": Path(__file__).parent / "planted_facts.jsonl",
    "held": Path(__file__).parent / "planted_more.jsonl",
}
"""Two sets of the same kinds. The rules were written with the first in sight, not with the second.
"""
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
class Source:
    """Where the talk and the facts come from: the shared data, a key of FACTS, and whether English
    talk is of short replies as well, which takes a model that writes summaries less time."""

    data: Path
    facts: str = "first"
    short: bool = False


@dataclass(frozen=True, slots=True)
class Chat:
    """The turns of one chat, each a question and a reply, and what was planted in them."""

    name: str
    turns: tuple[Filler, ...]
    planted: tuple[Planted, ...]


def chats(source: Source, language: str, *, seeds: Sequence[int], turns: int) -> Iterator[Chat]:
    """Two chats a seed: one with facts that stay, one in which each of them is corrected."""
    fillers = _english(source) if language == "en" else _answered(source.data, "korquad1")
    kinds = _kinds(source, language)
    for seed in seeds:
        talk = fillers[seed % len(fillers)]
        for corrected in (False, True):
            rng = random.Random(f"{language} {seed} {corrected}")
            filler = _drawn(rng, talk, turns)
            planted = [_planted(kind, kinds[kind], corrected, rng) for kind in kinds]
            yield _chat(f"{seed}{'c' if corrected else ''}", filler, planted, rng)


def _chat(name: str, filler: Sequence[Filler], planted: list[Planted], rng: random.Random) -> Chat:
    turns = [list(turn) for turn in filler]
    # The first two thirds, so that each fact is far back when it is asked for.
    places = sorted(rng.sample(range(2 * len(turns) // 3), len(planted)))
    for fact, place in zip(planted, places, strict=True):
        turns[place][0] = _beside(fact.said, turns[place][0], rng)
        if fact.change is not None:
            later = rng.randrange(place + 1, len(turns) - 4)
            turns[later][0] = _beside(fact.change, turns[later][0], rng)
    return Chat(name, tuple((user, reply) for user, reply in turns), tuple(planted))


def _kinds(source: Source, language: str) -> dict[str, list[dict[str, Any]]]:
    kinds: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for line in FACTS[source.facts].read_text(encoding="utf-8").splitlines():
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


def _english(source: Source) -> list[list[Filler]]:
    """BEAM: questions and replies of people planning, studying and writing programs."""
    if source.short:
        return _answered(source.data, "xquad_en")
    found = []
    for path in sorted((source.data / "memory" / "beam100k").glob("*.json")):
        messages = json.loads(path.read_text(encoding="utf-8"))["messages"]
        pairs = [
            (_MARK.sub("", a["content"]), b["content"])
            for a, b in pairwise(messages)
            if a["role"] == "user" and b["role"] == "assistant"
        ]
        found.append([pair for pair in pairs if _is_short(pair)])
    return _some(found, source.data)


def _answered(data: Path, name: str) -> list[list[Filler]]:
    """XQuAD and KorQuAD: questions, each answered with the paragraph that holds the answer."""
    folder = data / "qa" / name
    if not folder.is_dir():
        return _some([], data)
    lines = (folder / "questions.jsonl").read_text(encoding="utf-8").splitlines()
    one_each: dict[str, Filler] = {}
    for line in lines:
        entry = json.loads(line)
        document = entry["gold"][0]["document"]
        reply = (folder / "documents" / document).read_text(encoding="utf-8").strip()
        one_each.setdefault(document, (entry["question"], reply))
    pairs = [pair for pair in one_each.values() if _is_short(pair)]
    parts = max(1, min(10, len(pairs) // 60))
    return _some([pairs[n::parts] for n in range(parts)], data)


def _is_short(pair: Filler) -> bool:
    return len(pair[0]) <= LONGEST_QUESTION and len(pair[1]) <= LONGEST_REPLY


def _some(found: list[list[Filler]], data: Path) -> list[list[Filler]]:
    if not any(found):
        raise SystemExit(f"There is no talk to fill the chats with in {data}; see --data.")
    return [source for source in found if source]
