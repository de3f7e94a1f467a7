"""Does the query that is searched for a follow-up name what the follow-up leaves out? No model.

    python -m benchmarks.followup_queries CAST_DIR [--json]

CAST_DIR holds topics of TREC CAsT 2019 and 2020: questions of one conversation with rewrites by
people that stand alone. `share` is the mean share of a rewrite's content words that are in the
query, over all questions but the first of each topic; `raw` is the same for the question as it was
asked; `changed` are those questions that people found in need of a rewrite.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from chatbot.import_messages import parse_messages
from chatbot.query import search_query
from retrieval.words import content_terms, lexical_terms

RESOLVED_2019 = (
    ("2019/data/training/train_topics_v1.0.json",
     "2019/data/training/train_topic_sample_annotated_resolved_v1.0.tsv"),
    ("2019/data/evaluation/evaluation_topics_v1.0.json",
     "2019/data/evaluation/evaluation_topics_annotated_resolved_v1.0.tsv"),
)  # fmt: skip
TOPICS_2020 = "2020/2020_manual_evaluation_topics_v1.0.json"


@dataclass(frozen=True, slots=True)
class FollowUp:
    """A question, those before it in its conversation, and the rewrite."""

    year: str
    before: tuple[str, ...]
    question: str
    rewrite: str

    @property
    def changed(self) -> bool:
        return content_terms(self.question) != content_terms(self.rewrite)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("cast_dir", type=Path)
    parser.add_argument("--json", action="store_true", help="the default; for symmetry")
    given = parser.parse_args(arguments)
    items = list(follow_ups(given.cast_dir))
    report: dict[str, Any] = figures(items)
    report["changed"] = figures([item for item in items if item.changed])
    report["years"] = {
        year: figures([item for item in items if item.year == year]) for year in ("2019", "2020")
    }
    print(json.dumps(report))
    return 0


def follow_ups(folder: Path) -> Iterator[FollowUp]:
    """Every question but the first of each topic that has a rewrite."""
    for topics, rewrites in RESOLVED_2019:
        lines = (folder / rewrites).read_text(encoding="utf-8").splitlines()
        resolved = dict(line.split("\t", 1) for line in lines if "\t" in line)
        for topic in _read(folder / topics):
            said = [turn["raw_utterance"].strip() for turn in topic["turn"]]
            known = [resolved.get(f"{topic['number']}_{turn['number']}") for turn in topic["turn"]]
            yield from _of_topic("2019", said, known)
    for topic in _read(folder / TOPICS_2020):
        said = [turn["raw_utterance"].strip() for turn in topic["turn"]]
        known = [turn.get("manual_rewritten_utterance") for turn in topic["turn"]]
        yield from _of_topic("2020", said, known)


def _of_topic(year: str, said: Sequence[str], known: Sequence[str | None]) -> Iterator[FollowUp]:
    for number in range(1, len(said)):
        rewrite = known[number]
        if rewrite:
            yield FollowUp(year, tuple(said[:number]), said[number], rewrite)


def _read(path: Path) -> list[dict[str, Any]]:
    topics: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))
    return topics


def query_of(item: FollowUp) -> str:
    """What is searched for the question; the set has no replies."""
    messages = [{"role": "user", "content": text} for text in item.before]
    replied = [m for message in messages for m in (message, {"role": "assistant", "content": "…"})]
    return search_query(item.question, parse_messages(replied).turns)


def share(rewrite: str, query: str) -> float:
    """The share of a rewrite's content words that a query holds."""
    wanted = content_terms(rewrite)
    return len(wanted & set(lexical_terms(query))) / len(wanted) if wanted else 1.0


def figures(items: Sequence[FollowUp]) -> dict[str, float]:
    n = max(len(items), 1)
    queries = [query_of(item) for item in items]
    pairs = list(zip(items, queries, strict=True))
    return {
        "questions": len(items),
        "share": round(sum(share(i.rewrite, q) for i, q in pairs) / n, 4),
        "raw": round(sum(share(i.rewrite, i.question) for i in items) / n, 4),
        "terms": round(sum(len(content_terms(q)) for q in queries) / n, 1),
    }


if __name__ == "__main__":
    raise SystemExit(main())
