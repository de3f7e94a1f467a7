"""Do citations point to the right place, and are wrong statements marked? Calls no model.

    python -m benchmarks.citations [QA_SET_DIR...] [--questions 200] [--json]

For each question a reply is given: its gold answer put into a sentence. `right_located` is the
share of right replies that are cited to the gold document with the answer inside the quoted
characters, and nothing marked. For `changed_flagged`, one number or name of the answer is replaced
by another that the gold document lacks; it is the share of those replies that are marked as
unsupported. The gold passage stands among four others of the set.
"""

from __future__ import annotations

import argparse
import json
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from retrieval.align import align
from retrieval.context import LabelledPassage
from retrieval.types import Passage

DATA = Path(__file__).resolve().parent.parent.parent / "shared" / "data" / "qa"
SENTENCES = {
    "en": ("According to the document, the answer is {answer}.", "{question} It is {answer}."),
    "ko": ("문서에 따르면 정답은 {answer}입니다.", "{question} {answer}입니다."),
}


@dataclass(frozen=True, slots=True)
class Example:
    """A question with its answer, the gold passage, and what to put in the answer's place."""

    question: str
    answer: str
    wrong: str | None
    passages: tuple[LabelledPassage, ...]
    gold: Passage


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    usual = [DATA / name for name in ("xquad_en", "korquad1")]
    parser.add_argument("set_dirs", type=Path, nargs="*", default=usual)
    parser.add_argument("--questions", type=int, default=200)
    parser.add_argument("--show", action="store_true", help="print what went wrong")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args(arguments)
    for folder in given.set_dirs:
        if not (folder / "questions.jsonl").is_file():
            parser.error(f"{folder} holds no questions.jsonl; name the folders of question sets.")
    result: dict[str, Any] = {"sets": {}}
    for folder in given.set_dirs:
        examples = read_examples(folder, given.questions)
        result["sets"][folder.name] = measure(examples, show=given.show)
    for key in ("right_located", "changed_flagged"):
        values = [figures[key] for figures in result["sets"].values()]
        result[key] = round(sum(values) / len(values), 4)
    print(json.dumps(result, ensure_ascii=False))
    return 0


def measure(examples: Sequence[Example], *, show: bool) -> dict[str, Any]:
    located: list[bool] = []
    flagged: list[bool] = []
    for example in examples:
        language = "ko" if re.search("[가-힣]", example.question) else "en"
        for sentence in SENTENCES[language]:
            reply = sentence.format(question=example.question, answer=example.answer)
            located.append(is_located(reply, example))
            if show and not located[-1]:
                print("NOT LOCATED", reply, "|", align(reply, example.passages, example.question))
            if example.wrong is not None:
                reply = sentence.format(question=example.question, answer=example.wrong)
                flagged.append(bool(align(reply, example.passages, example.question)[1]))
                if show and not flagged[-1]:
                    print("NOT FLAGGED", reply, "| right:", example.answer)
    return {
        "replies": len(located),
        "right_located": round(sum(located) / max(len(located), 1), 4),
        "changed": len(flagged),
        "changed_flagged": round(sum(flagged) / max(len(flagged), 1), 4),
    }


def is_located(reply: str, example: Example) -> bool:
    citations, unsupported = align(reply, example.passages, example.question)
    return not unsupported and any(
        c.document == example.gold.document
        and example.answer in example.gold.text[c.start : c.end] == c.quote
        for c in citations
    )


def read_examples(folder: Path, limit: int) -> list[Example]:
    lines = (folder / "questions.jsonl").read_text(encoding="utf-8").splitlines()
    step = max(len(lines) // limit, 1)
    rows = [json.loads(line) for line in lines[::step][:limit]]
    texts = {
        p.name: p.read_text(encoding="utf-8") for p in sorted((folder / "documents").iterdir())
    }
    answers = sorted({row["answers"][0] for row in map(json.loads, lines)})
    chance = random.Random(7)
    return [
        example_of(row, texts, answers, chance)
        for row in rows
        if row["answers"][0] in texts[row["gold"][0]["document"]]
    ]


def example_of(
    row: dict[str, Any], texts: dict[str, str], answers: list[str], chance: random.Random
) -> Example:
    document, answer = row["gold"][0]["document"], row["answers"][0]
    others = chance.sample([name for name in texts if name != document], 4)
    passages = []
    for number, name in enumerate([document, *others], start=1):
        text = texts[name]
        passages.append(Passage(number, name, name, text, 0, len(text), 1, 1 / number))
    gold = passages[0]
    chance.shuffle(passages)
    labelled = tuple(LabelledPassage(str(n), p) for n, p in enumerate(passages, start=1))
    wrong = changed(answer, texts[document], answers, chance)
    return Example(row["question"], answer, wrong, labelled, gold)


def changed(answer: str, text: str, answers: list[str], chance: random.Random) -> str | None:
    """The answer with one number or name replaced; None if it holds neither."""
    number = re.search(r"\d+", answer)
    if number:
        for step in chance.sample(range(1, 90), 20):
            other = str(int(number[0]) + step)
            if other not in text:
                return answer[: number.start()] + other + answer[number.end() :]
    if re.fullmatch(r"[A-Z][\w'’-]+(?: [A-Z][\w'’-]+)*|[가-힣]{2,5}", answer):
        shape = r"[A-Z][\w'’-]+(?: [A-Z][\w'’-]+)*" if answer[0].isascii() else "[가-힣]{2,5}"
        names = [a for a in answers if re.fullmatch(shape, a) and not shared(a, text)]
        return chance.choice(names) if names else None
    return None


def shared(name: str, text: str) -> bool:
    return any(word in text for word in name.split())


if __name__ == "__main__":
    raise SystemExit(main())
