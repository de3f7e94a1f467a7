"""Is the evidence for a question in the passages that fit a token budget? Calls no language model.

Run: python -m benchmarks.document_evidence SET_DIR [--budget-tokens N ...] [--json]

SET_DIR holds `documents/` and `questions.jsonl`, one question a line:
{"id", "question", "documents": [names] or null, "gold": [{"document", "text" | "start", "end"}]}.
The last line printed is one JSON object. For each budget: `all`, the share of questions whose gold
texts are all inside the passages; `chars`, the mean share of gold characters inside them;
`over_budget`, how many prompts were longer than allowed. `top1` is the share of questions whose
best passage touches a gold text.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from chatbot.engine.tokenizers import load_tokenizer
from retrieval.context import LabelledPassage, pack
from retrieval.embed import Embedder, SentenceTransformerEmbedder
from retrieval.pipeline import Library
from retrieval.types import CountTokens, Passage, passage_body

Range = tuple[str, int, int]


@dataclass(frozen=True, slots=True)
class Question:
    """`gold`: (document name, start, end); `scope`: document ids, None for all."""

    text: str
    gold: tuple[Range, ...]
    scope: tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one budget gave for one question."""

    covered: float
    complete: bool
    tokens: int


def covered_characters(gold: Range, passages: Sequence[Passage]) -> int:
    """How many characters of a gold range stand in at least one passage."""
    name, start, end = gold
    inside: set[int] = set()
    for passage in passages:
        if passage.document == name:
            inside.update(range(max(start, passage.start), min(end, passage.end)))
    return len(inside)


def load_questions(path: Path, library: Library) -> list[Question]:
    """Questions whose gold texts are found in the library's texts; others are counted on stderr."""
    ids = {info.name: info.id for info in library.documents()}
    texts = {name: library.document_text(document_id) for name, document_id in ids.items()}
    questions, lost = [], 0
    for line in path.read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        gold = [_locate(item, texts) for item in record["gold"]]
        found = [item for item in gold if item is not None]
        lost += len(found) < len(gold)
        names = record.get("documents")
        scope = None if names is None else tuple(ids[name] for name in names)
        if gold and len(found) == len(gold):
            questions.append(Question(record["question"], tuple(found), scope))
    if lost:
        print(f"{lost} questions left out: their gold text is not in a document", file=sys.stderr)
    return questions


def _locate(gold: dict[str, Any], texts: dict[str, str]) -> Range | None:
    text = texts.get(gold["document"], "")
    wanted = gold.get("text", "").strip()
    start = text.find(wanted)
    if "start" in gold:
        near = text.find(wanted, max(0, gold["start"] - 5))
        start = near if near >= 0 else start
    return (gold["document"], start, start + len(wanted)) if wanted and start >= 0 else None


def render_tokens(count_tokens: CountTokens) -> Any:
    """Counts a passage with its label and place, as a prompt shows it."""

    def count(label: str, passage: Passage) -> int:
        page = f", p. {passage.page}" if passage.page else ""
        body = passage_body(passage.context, passage.text)
        return count_tokens(f"[{label}] {passage.document}{page}\n{body}\n\n")

    return count


def measure(
    library: Library,
    questions: Sequence[Question],
    budgets: Sequence[int],
    count_tokens: CountTokens,
) -> dict[str, Any]:
    """The figures of all questions, by budget."""
    render = render_tokens(count_tokens)
    outcomes: dict[int, list[Outcome]] = {budget: [] for budget in budgets}
    top1 = 0
    begin = time.perf_counter()
    for question in questions:
        passages = library.search(question.text, document_ids=question.scope)
        top1 += any(covered_characters(gold, passages[:1]) for gold in question.gold)
        for budget in budgets:
            narrowed = library.search(
                question.text, document_ids=question.scope, budget_tokens=budget
            )
            packed = pack(narrowed, budget, render)
            outcomes[budget].append(_outcome(question, packed.passages, render))
    elapsed = time.perf_counter() - begin
    n_questions = max(1, len(questions))
    figures: dict[str, Any] = {"questions": len(questions), "top1": round(top1 / n_questions, 4)}
    for budget, each in outcomes.items():
        figures[str(budget)] = {
            "all": round(sum(o.complete for o in each) / n_questions, 4),
            "chars": round(sum(o.covered for o in each) / n_questions, 4),
            "over_budget": sum(o.tokens > budget for o in each),
            "tokens": round(sum(o.tokens for o in each) / n_questions, 1),
        }
    figures["ms_per_question"] = round(1000 * elapsed / n_questions, 1)
    return figures


def _outcome(question: Question, taken: Sequence[LabelledPassage], render: Any) -> Outcome:
    passages = [item.passage for item in taken]
    lengths = [end - start for _, start, end in question.gold]
    covered = [covered_characters(gold, passages) for gold in question.gold]
    return Outcome(
        sum(covered) / max(1, sum(lengths)),
        covered == lengths,
        sum(render(item.label, item.passage) for item in taken),
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Build a library in a temporary folder, ask all questions, print the figures."""
    options = _parser().parse_args(arguments)
    count_tokens: CountTokens = _by_words
    if options.tokenizer:
        tokenizer = load_tokenizer(options.tokenizer)
        count_tokens = lambda text: len(tokenizer.encode(text))  # noqa: E731
    embedder: Embedder | None = None
    if options.embedder != "none":
        embedder = SentenceTransformerEmbedder(options.embedder)
    with tempfile.TemporaryDirectory() as folder:
        library = Library(Path(folder), embedder=embedder, count_tokens=count_tokens)
        begin = time.perf_counter()
        for report in library.ingest_tree([options.set_dir / "documents"]):
            if report.status != "indexed":
                print(f"{report.file}: {report.status}: {report.message}", file=sys.stderr)
        ingest_s = time.perf_counter() - begin
        questions = load_questions(options.set_dir / "questions.jsonl", library)
        if options.sample and options.sample < len(questions):
            questions = random.Random(0).sample(questions, options.sample)
        figures = measure(library, questions, options.budget_tokens, count_tokens)
        library.close()
    figures |= {"set": options.set_dir.name, "ingest_s": round(ingest_s, 1)}
    if not options.json:
        for key, value in figures.items():
            print(f"{key:>16}: {value}")
    print(json.dumps(figures))
    return 0


def _by_words(text: str) -> int:
    return max(len(text.split()), len(text) // 4)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("set_dir", type=Path)
    parser.add_argument(
        "--tokenizer", help="Llama 3's tokenizer.model, a tokenizer.json or a model folder"
    )
    parser.add_argument("--embedder", default="none", help="none, or a model folder or name")
    parser.add_argument("--budget-tokens", type=int, nargs="+", default=[1024, 2048])
    parser.add_argument("--sample", type=int, default=0, help="ask only so many questions")
    parser.add_argument("--json", action="store_true", help="print the JSON line only")
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
