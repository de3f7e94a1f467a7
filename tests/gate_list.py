"""Reads the lists of good and bad summaries in tests/data.

A list is a file gate_*.jsonl with one JSON object a line. Either a conversation,

    {"conversation": NAME, "language": "en" or "ko", "turns": [[USER, REPLY], ...]}

(with "file": PATH in the shared data, "messages": [FROM, TO] in place of "turns", for real talk
that does not belong to the project), or a summary of the conversation named above it,

    {"source": NAME, "accept": true or false, "kind": KIND, "candidate": TEXT}

optionally with "reason" (why, for people), "previous" (the summary that was merged in), "facts"
(lines that the list of facts keeps), "finish" and "trimmed". To extend a list, add lines.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from chatbot.facts import extract_facts
from chatbot.language import Language
from chatbot.linking import linked
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


SHARED = Path(__file__).resolve().parent.parent.parent / "shared" / "data"


def read_cases(path: Path) -> list[Case]:
    conversations: dict[str, _Conversation] = {}
    cases: list[Case] = []
    for line in path.read_text(encoding="utf-8").splitlines():
        entry = json.loads(line)
        if "conversation" in entry:
            if "file" in entry and not (SHARED / entry["file"]).is_file():
                return []
            conversations[entry["conversation"]] = _conversation(_with_turns(entry))
        else:
            cases.append(_case(len(cases), entry, conversations[entry["source"]]))
    return cases


def _with_turns(entry: dict[str, Any]) -> dict[str, Any]:
    if "file" not in entry:
        return entry
    first, last = entry["messages"]
    data = json.loads((SHARED / entry["file"]).read_text(encoding="utf-8"))
    said = [message["content"] for message in data["messages"][first:last]]
    return entry | {"turns": list(zip(said[::2], said[1::2], strict=True))}


@dataclass(frozen=True)
class _Conversation:
    """What all summaries of one conversation have in common."""

    turns: list[Turn]
    language: Language
    changes: list[tuple[str, str]]


def _conversation(entry: dict[str, Any]) -> _Conversation:
    turns = turns_of(entry)
    changes = [
        (found.replaces.text, found.fact.text)
        for found in linked(extract_facts(turns))
        if found.replaces
    ]
    return _Conversation(turns, entry["language"], changes)


def turns_of(conversation: dict[str, Any]) -> list[Turn]:
    return [
        Turn(str(n), (Message(f"u{n}", "user", user),), (Message(f"a{n}", "assistant", reply),))
        for n, (user, reply) in enumerate(conversation["turns"])
    ]


def _case(number: int, entry: dict[str, Any], conversation: _Conversation) -> Case:
    previous = entry.get("previous")
    source = source_of(
        conversation.turns,
        RollingSummary(previous, 1, count_tokens(previous)) if previous else None,
        language=conversation.language,
        count_tokens=count_tokens,
        facts=entry.get("facts", ()),
        changes=conversation.changes,
    )
    text = tidy(entry["candidate"])
    candidate = Candidate(
        text, entry.get("finish", "stop"), count_tokens(text), entry.get("trimmed", False)
    )
    return Case(number, entry["kind"], entry["accept"], candidate, source)
