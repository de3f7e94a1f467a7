"""How often the demo model's reply holds the answer, given the gold passage: chooses its prompts.

    python -m benchmarks.demo_answers SET_DIR [--questions 200] [--variant NAME ...] [--json]

SET_DIR holds `documents/` and `questions.jsonl` ({question, gold: [{document, text}], answers}).
A reply counts when one of the accepted answers stands in it, compared without case, articles and
punctuation. "shipped" are the texts of `prompts/`; the other variants were tried against them.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import prompts
from chatbot.engine.base import Engine, Finished, SamplingParams
from chatbot.parts import load_engine
from chatbot.render import PieceEncoder, PromptParts, render
from chatbot.settings import load_settings
from retrieval.align import best_sentence
from retrieval.context import LabelledPassage
from retrieval.types import Passage

REPLY_TOKENS = 48


@dataclass(frozen=True, slots=True)
class Wording:
    """The texts around a passage: system text, what stands before it, and before the question."""

    system: str
    header: str
    lead: str
    after: str = ""


def shipped() -> Wording:
    """The English texts that the program uses."""
    documents, label = prompts.load("documents", "en"), prompts.load("label_passages", "en")
    return Wording(
        prompts.load("system", "en"),
        f"{documents}\n{label}\n\n",
        f"{prompts.load('label_question', 'en')}\n",
    )


VARIANTS = {
    "plain": Wording("You are a helpful assistant.", "", ""),
    "context": Wording("You are a helpful assistant.", "Context:\n", "Question: "),
    "short": Wording(
        "You are a helpful assistant.",
        "Read the text and answer the question in a short sentence.\n\n",
        "Question: ",
    ),
    "extract": Wording(
        "You find answers in texts.",
        "Text:\n",
        "Answer this question with words from the text: ",
    ),
    "short_system": Wording(
        "You are a helpful assistant. Answer briefly, from the passages if there are any.",
        "Passages from the documents:\n\n",
        "Question:\n",
    ),
    "after": Wording(
        "You are a helpful assistant.",
        "",
        "Use the text above to answer this question in one sentence: ",
    ),
}


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("set_dir", type=Path)
    parser.add_argument("--questions", type=int, default=200)
    parser.add_argument("--variant", action="append", choices=["shipped", *VARIANTS])
    parser.add_argument("--repetition-penalty", type=float, default=None)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args(arguments)
    settings = load_settings({"model": "demo", "window_tokens": 2048})
    engine = load_engine(settings)
    penalty = given.repetition_penalty or settings.repetition_penalty
    examples = list(read_examples(given.set_dir, given.questions))
    shares: dict[str, float] = {}
    for name in given.variant or ["shipped"]:
        wording = shipped() if name == "shipped" else VARIANTS[name]
        hits = [answered(engine, wording, example, penalty) for example in examples]
        shares[name] = round(sum(hits) / len(hits), 4)
        print(f"{name}: {sum(hits)} of {len(hits)}", file=sys.stderr, flush=True)
    quoted = [holds(quote(example), example["answers"]) for example in examples]
    result: dict[str, Any] = {
        "questions": len(examples),
        "answered": shares,
        "best_sentence": round(sum(quoted) / len(quoted), 4),
        "repetition_penalty": penalty,
    }
    print(json.dumps(result))
    engine.close()
    return 0


def read_examples(folder: Path, limit: int) -> Iterator[dict[str, Any]]:
    """Every n-th question of the set, so that all documents take part."""
    lines = (folder / "questions.jsonl").read_text(encoding="utf-8").splitlines()
    step = max(len(lines) // limit, 1)
    for line in lines[::step][:limit]:
        yield json.loads(line)


def answered(engine: Engine, wording: Wording, example: dict[str, Any], penalty: float) -> bool:
    """Whether the reply to one question holds its answer."""
    prompt_ids = prompt_for(engine, wording, example)
    params = SamplingParams(max_tokens=REPLY_TOKENS, repetition_penalty=penalty)
    for event in engine.generate(prompt_ids, params):
        if isinstance(event, Finished):
            return holds(event.text, example["answers"])
    return False


def prompt_for(engine: Engine, wording: Wording, example: dict[str, Any]) -> tuple[int, ...]:
    """The prompt with the gold passage, rendered as the program renders it."""
    encoder = PieceEncoder(engine.tokenizer)
    passage = encoder.passage(gold_passage(example), "1")
    parts = PromptParts(
        system=encoder.system(wording.system),
        summary=None,
        turns=(),
        recalled=(),
        passages=(encoder.with_header(passage, wording.header),),
        question=encoder.question(example["question"] + wording.after, wording.lead),
    )
    return render(parts, encoder.format).token_ids


def gold_passage(example: dict[str, Any]) -> Passage:
    gold = example["gold"][0]
    return Passage(1, "d", gold["document"], gold["text"], 0, len(gold["text"]), 1, 1.0)


def quote(example: dict[str, Any]) -> str:
    """The sentence that the program shows beside the reply."""
    found = best_sentence(example["question"], [LabelledPassage("1", gold_passage(example))])
    return found.quote if found else ""


def holds(reply: str, answers: list[str]) -> bool:
    text = normalised(reply)
    return any(normalised(answer) in text for answer in answers)


def normalised(text: str) -> str:
    """As in the SQuAD evaluation: lower case, no articles, no punctuation, single spaces."""
    text = re.sub(r"\b(a|an|the)\b", " ", text.lower())
    return " " + " ".join(re.findall(r"\w+", text)) + " "


if __name__ == "__main__":
    raise SystemExit(main())
