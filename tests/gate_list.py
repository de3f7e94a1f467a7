"""Reads the lists of good and bad summaries in tests/data."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from chatbot.messages import Message, RollingSummary, Turn
from chatbot.summary_gate import Candidate, Source, Verdict, judge, source_of, tidy

CAP_TOKENS = 200


def count_tokens(text: str) -> int:
    """About as many tokens as a small vocabulary would need."""
    return (len(text.encode()) + 3) // 4


@dataclass(frozen=True)
class Case:
    """One summary with what should become of it."""

    number: int
    kind: str
    accept: bool
    candidate: Candidate
    source: Source

    def verdict(self) -> Verdict:
        return judge(self.candidate, self.source, cap_tokens=CAP_TOKENS)


def read_cases(path: Path) -> list[Case]:
    conversations: dict[str, dict[str, Any]] = {}
    cases: list[Case] = []
    for line in path.read_text(encoding="utf-8").splitlines():
        entry = json.loads(line)
        if "conversation" in entry:
            conversations[entry["conversation"]] = entry
        else:
            cases.append(_case(len(cases), entry, conversations[entry["source"]]))
    return cases


def turns_of(conversation: dict[str, Any]) -> list[Turn]:
    return [
        Turn(str(n), (Message(f"u{n}", "user", user),), (Message(f"a{n}", "assistant", reply),))
        for n, (user, reply) in enumerate(conversation["turns"])
    ]


def _case(number: int, entry: dict[str, Any], conversation: dict[str, Any]) -> Case:
    previous = entry.get("previous")
    source = source_of(
        turns_of(conversation),
        RollingSummary(previous, 1, count_tokens(previous)) if previous else None,
        language=conversation["language"],
        count_tokens=count_tokens,
        facts=entry.get("facts", ()),
    )
    text = tidy(entry["candidate"])
    candidate = Candidate(
        text, entry.get("finish", "stop"), count_tokens(text), entry.get("trimmed", False)
    )
    return Case(number, entry["kind"], entry["accept"], candidate, source)
