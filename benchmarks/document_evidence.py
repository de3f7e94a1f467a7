"""Is the evidence for a question in the prompt that it would have? Calls no language model.

Run: python -m benchmarks.document_evidence SET_DIR [--prompt-tokens 1024] [--tokenizer PATH]
     [--embedding-model NAME] [--sample N | --half 0|1] [--misses FILE] [--json]

SET_DIR holds `documents/` and `questions.jsonl`, one question a line:
{"id", "question", "documents": [names] or null, "gold": [{"document", "text" | "start", "end"}]}.
Prompts come from `python -m chatbot context`. The last line printed is one JSON object: `all`, the
share of questions whose gold texts are all in the prompt whole; `chars`, the mean share of gold
characters in it; `answers`, of the questions with an answer that stands in a gold text word for
word, the share with one of these in a passage of that document; `top1`, the share of questions
whose best passage touches a gold text; `over_budget`, how many prompts were longer than allowed;
`tokens`, how long they are on average.
Where several documents have the very same text, a passage of one counts as of all: search shows
such a text once.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import Any

Range = tuple[str, int, int]
"""Document, start, end."""


@dataclass(frozen=True, slots=True)
class Question:
    """One line of the set, with its gold texts where they stand."""

    record: dict[str, Any]
    gold: tuple[Range, ...]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one prompt held of the gold texts."""

    covered: float
    complete: bool
    top: bool
    tokens: int
    answered: bool | None = None
    """Whether an answer stands in it; None for a question without known answers."""


def read_questions(folder: Path) -> list[Question]:
    """The questions whose gold texts are in the set's files; others are counted on stderr."""
    texts: dict[str, str] = {}
    questions, lost = [], 0
    for line in (folder / "questions.jsonl").read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        for gold in record["gold"]:
            name = gold["document"]
            if name not in texts:
                texts[name] = (folder / "documents" / name).read_text(encoding="utf-8")
        found = [located(gold, texts[gold["document"]]) for gold in record["gold"]]
        if found and all(found):
            questions.append(Question(record, tuple(item for item in found if item)))
        else:
            lost += 1
    if lost:
        print(f"{lost} questions left out: their gold text is not in a document", file=sys.stderr)
    return questions


def twins(folder: Path) -> dict[str, str]:
    """For each document whose text another one has as well, the name of the first of these."""
    first: dict[bytes, str] = {}
    paths = sorted(path for path in (folder / "documents").iterdir() if path.is_file())
    found = {path.name: first.setdefault(path.read_bytes(), path.name) for path in paths}
    return {name: other for name, other in found.items() if name != other}


def located(gold: dict[str, Any], text: str) -> Range | None:
    """Where a gold text stands; one with offsets is looked for beside them first."""
    wanted = gold.get("text", "").strip()
    if not wanted:
        return (gold["document"], gold["start"], gold["end"]) if "start" in gold else None
    start = text.find(wanted, max(0, gold.get("start", 0) - 5))
    start = text.find(wanted) if start < 0 else start
    return (gold["document"], start, start + len(wanted)) if start >= 0 else None


def judged(
    gold: Sequence[Range],
    trace: dict[str, Any],
    same: Mapping[str, str] = MappingProxyType({}),
    answers: Sequence[str] = (),
) -> Outcome:
    """What the passages of a prompt hold of the gold texts. `same` are the results of `twins`."""
    gold = [(same.get(name, name), start, end) for name, start, end in gold]
    passages = [
        (_named(s["document"], same), s["start"], s["end"])
        for s in sorted(
            (s for s in trace["segments"] if s["kind"] == "passage"), key=lambda s: int(s["label"])
        )
    ]
    covered = [_inside(item, passages) for item in gold]
    lengths = [end - start for _, start, end in gold]
    return Outcome(
        sum(covered) / max(1, sum(lengths)),
        covered == lengths,
        any(_inside(item, passages[:1]) for item in gold),
        trace["prompt_tokens"],
        _answered(answers, {name for name, _, _ in gold}, trace, same) if answers else None,
    )


def _answered(
    answers: Sequence[str], documents: set[str], trace: dict[str, Any], same: Mapping[str, str]
) -> bool:
    texts = [
        segment["text"]
        for segment in trace["segments"]
        if segment["kind"] == "passage" and _named(segment["document"], same) in documents
    ]
    return any(answer in text for answer in answers for text in texts)


def _named(document: str, same: Mapping[str, str]) -> str:
    name = PurePosixPath(document).name
    return same.get(name, name)


def _inside(gold: Range, passages: Sequence[Range]) -> int:
    """How many characters of a gold text stand in at least one passage."""
    name, start, end = gold
    held: set[int] = set()
    for document, first, last in passages:
        if document == PurePosixPath(name).name:
            held.update(range(max(start, first), min(end, last)))
    return len(held)


def summary(outcomes: Sequence[Outcome], limit_tokens: int) -> dict[str, Any]:
    """The figures of all questions."""
    count = max(1, len(outcomes))
    return {
        "questions": len(outcomes),
        "all": round(sum(o.complete for o in outcomes) / count, 4),
        "chars": round(sum(o.covered for o in outcomes) / count, 4),
        "answers": _share([o.answered for o in outcomes if o.answered is not None]),
        "top1": round(sum(o.top for o in outcomes) / count, 4),
        "over_budget": sum(o.tokens > limit_tokens for o in outcomes),
        "tokens": round(sum(o.tokens for o in outcomes) / count, 1),
    }


def _share(found: Sequence[bool]) -> float | None:
    return round(sum(found) / len(found), 4) if found else None


def literal_answers(record: dict[str, Any]) -> list[str]:
    """The known answers that stand in a gold text; `yes` and the like do not."""
    texts = [gold.get("text", "") for gold in record["gold"]]
    return [a for a in record.get("answers") or () if any(a in text for text in texts)]


def traces(questions: Sequence[Question], options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """The prompt of each question, from the public command."""
    with tempfile.TemporaryDirectory() as folder:
        asked = Path(folder) / "questions.jsonl"
        lines = [
            json.dumps({key: q.record.get(key) for key in ("question", "documents")})
            for q in questions
        ]
        asked.write_text("\n".join(lines) + "\n", encoding="utf-8")
        command = [sys.executable, "-m", "chatbot", "context", "--json"]
        command += ["--documents", str(options.set_dir / "documents"), "--questions", str(asked)]
        command += ["--prompt-tokens", str(options.prompt_tokens)]
        for name in ("tokenizer", "embedding_model"):
            if value := getattr(options, name):
                command += [f"--{name.replace('_', '-')}", value]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr.strip())
    yield from (json.loads(line) for line in done.stdout.splitlines())


def chosen(questions: list[Question], options: argparse.Namespace) -> list[Question]:
    """A random half or sample, always the same one."""
    mixed = random.Random(0).sample(questions, len(questions))
    if options.half is not None:
        return mixed[options.half :: 2]
    return mixed[: options.sample] if options.sample else questions


def main(arguments: Sequence[str] | None = None) -> int:
    """Ask all questions and print the figures."""
    options = _parser().parse_args(arguments)
    questions = chosen(read_questions(options.set_dir), options)
    begin = time.perf_counter()
    answers = list(traces(questions, options))
    same = twins(options.set_dir)
    outcomes = [
        judged(q.gold, trace, same, literal_answers(q.record))
        for q, trace in zip(questions, answers, strict=True)
    ]
    figures = {"set": options.set_dir.name, "prompt_tokens": options.prompt_tokens}
    figures |= summary(outcomes, options.prompt_tokens)
    figures["elapsed_s"] = round(time.perf_counter() - begin, 1)
    if options.misses:
        lines = [
            json.dumps({**q.record, "covered": round(o.covered, 3)}, ensure_ascii=False)
            for q, o in zip(questions, outcomes, strict=True)
            if not o.complete
        ]
        options.misses.write_text("\n".join(lines) + "\n", encoding="utf-8")
    if not options.json:
        for key, value in figures.items():
            print(f"{key:>16}: {value}")
    print(json.dumps(figures))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("set_dir", type=Path)
    parser.add_argument("--prompt-tokens", type=int, default=1024)
    parser.add_argument(
        "--tokenizer", help="Llama 3's tokenizer.model, a tokenizer.json or a model folder"
    )
    parser.add_argument("--embedding-model", help="as in the program, and its default")
    some = parser.add_mutually_exclusive_group()
    some.add_argument("--sample", type=int, default=0, help="ask only so many questions")
    some.add_argument("--half", type=int, choices=(0, 1), help="one half, to tune on the other")
    parser.add_argument("--misses", type=Path, help="write what is not complete to this file")
    parser.add_argument("--json", action="store_true", help="print the JSON line only")
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
