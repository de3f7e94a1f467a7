"""Is the evidence for a question in the prompt that is assembled for it? Long chats, no model.

    python -m benchmarks.memory_evidence SET_DIR [--tokenizer PATH] [--prompt-tokens 2048] [--json]

SET_DIR holds one JSON file a conversation: {id, messages, questions: [{id, question, evidence,
category}]}. Prompts come from `python -m chatbot context`. An evidence message counts as present
when a segment with its id holds the whole message, or at least 60 tokens of it. Questions without
evidence, and of the categories that ask for the whole chat, are left out. `share` is the share of
the tokens of all evidence messages that are in the prompt.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.vocabulary import llama3_vocabulary
from chatbot.engine.base import ChatTokenizer
from chatbot.engine.tokenizers import load_tokenizer

LEFT_OUT = frozenset({"abstention", "event_ordering", "summarization"})
ENOUGH_TOKENS = 60


@dataclass(frozen=True, slots=True)
class Outcome:
    """One question: how much of its evidence is in the prompt."""

    category: str
    any: bool
    all: bool
    share: float
    over_budget: bool


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("set_dir", type=Path)
    parser.add_argument("--tokenizer", type=Path, default=None, help="default: Llama 3's")
    parser.add_argument("--prompt-tokens", type=int, default=2048)
    parser.add_argument("--conversations", type=int, default=None, help="only the first so many")
    parser.add_argument("--json", action="store_true")
    given, passed_on = parser.parse_known_args(arguments)
    path = given.tokenizer or llama3_vocabulary()
    tokenizer = load_tokenizer(path)
    outcomes: list[Outcome] = []
    for file in sorted(given.set_dir.glob("*.json"))[: given.conversations]:
        data = json.loads(file.read_text(encoding="utf-8"))
        options = ["--tokenizer", str(path), "--prompt-tokens", str(given.prompt_tokens)]
        traces = assembled(file, wanted(data), [*options, *passed_on])
        outcomes += judged(data, traces, tokenizer, given.prompt_tokens)
        print(f"{file.stem}: {len(outcomes)} questions so far", file=sys.stderr, flush=True)
    print(json.dumps(summary(outcomes)))
    return 0


def wanted(data: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The questions that have evidence to look for."""
    return [q for q in data["questions"] if q["evidence"] and q["category"] not in LEFT_OUT]


def assembled(
    conversation: Path, questions: list[dict[str, Any]], options: list[str]
) -> list[dict[str, Any]]:
    """The traces of the prompts for all questions, from the public command."""
    with tempfile.TemporaryDirectory() as folder:
        lines = Path(folder) / "questions.jsonl"
        lines.write_text("".join(f"{json.dumps(q)}\n" for q in questions), encoding="utf-8")
        command = [sys.executable, "-m", "chatbot", "context", "--json"]
        command += ["--conversation", str(conversation), "--questions", str(lines)]
        done = subprocess.run([*command, *options], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr)
    return [json.loads(line) for line in done.stdout.splitlines()]


def judged(
    data: Mapping[str, Any], traces: list[dict[str, Any]], tokenizer: ChatTokenizer, limit: int
) -> Iterator[Outcome]:
    texts = {str(m["id"]): m["content"] for m in data["messages"]}
    for question, trace in zip(wanted(data), traces, strict=True):
        parts = [evidence_tokens(str(e), texts, trace, tokenizer) for e in question["evidence"]]
        present = [held >= min(ENOUGH_TOKENS, whole) for held, whole in parts]
        total = sum(whole for _, whole in parts)
        yield Outcome(
            question["category"],
            any(present),
            all(present),
            sum(held for held, _ in parts) / max(total, 1),
            trace["prompt_tokens"] > limit,
        )


def evidence_tokens(
    message_id: str, texts: Mapping[str, str], trace: Mapping[str, Any], tokenizer: ChatTokenizer
) -> tuple[int, int]:
    """How many tokens of a message stand in the prompt, and how many it has."""
    content = texts[message_id]
    whole = len(tokenizer.encode(content.strip()))
    held = 0
    for segment in trace["segments"]:
        if message_id in segment.get("message_ids", ()):
            if content.strip() in segment["text"]:
                return whole, whole
            part = content[segment.get("start") or 0 : segment.get("end")].strip()
            held += len(tokenizer.encode(part)) if part in segment["text"] else 0
    return min(held, whole), whole


def summary(outcomes: list[Outcome]) -> dict[str, Any]:
    groups: dict[str, list[Outcome]] = defaultdict(list)
    for outcome in outcomes:
        groups[outcome.category].append(outcome)
    return {
        **figures(outcomes),
        "over_budget": sum(o.over_budget for o in outcomes),
        "categories": {name: figures(group) for name, group in sorted(groups.items())},
    }


def figures(outcomes: list[Outcome]) -> dict[str, Any]:
    n = max(len(outcomes), 1)
    return {
        "questions": len(outcomes),
        "any": round(sum(o.any for o in outcomes) / n, 4),
        "all": round(sum(o.all for o in outcomes) / n, 4),
        "share": round(sum(o.share for o in outcomes) / n, 4),
    }


if __name__ == "__main__":
    raise SystemExit(main())
