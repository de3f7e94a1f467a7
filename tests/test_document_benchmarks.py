"""The measuring command of document evidence judges as it says, over the public command."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.document_evidence import judged, literal_answers, located, main, summary, twins


def passage(label: int, document: str, start: int, end: int) -> dict[str, Any]:
    place = {"document": document, "start": start, "end": end}
    return {"kind": "passage", "label": str(label), **place}


def test_gold_texts_are_found_beside_their_offsets() -> None:
    text = "one two one two"
    assert located({"document": "a", "text": "one", "start": 8, "end": 11}, text) == ("a", 8, 11)
    assert located({"document": "a", "text": "two"}, text) == ("a", 4, 7)
    assert located({"document": "a", "text": "three"}, text) is None
    assert located({"document": "a", "start": 2, "end": 5}, text) == ("a", 2, 5)


def test_parts_add_up_and_other_documents_do_not_count() -> None:
    gold = [("a.txt", 10, 30)]
    halves = [passage(1, "b.txt", 0, 99), passage(2, "a.txt", 0, 20), passage(3, "d/a.txt", 18, 40)]
    trace = {"prompt_tokens": 90, "segments": [{"kind": "question"}, *halves]}
    whole = judged(gold, trace)
    assert (whole.covered, whole.complete, whole.top) == (1.0, True, False)
    trace["segments"] = halves[:2]
    half = judged(gold, trace)
    assert (half.covered, half.complete) == (0.5, False)
    figures = summary([whole, half], 89)
    assert (figures["all"], figures["chars"], figures["top1"]) == (0.5, 0.75, 0.0)
    assert figures["over_budget"] == 2


def test_an_answer_counts_where_it_stands_in_a_gold_document() -> None:
    gold = [("a.txt", 10, 30)]
    for document, answers, expected in (
        ("a.txt", ["in 1898"], True),
        ("b.txt", ["in 1898"], False),
        ("a.txt", ["in 1899"], False),
        ("a.txt", [], None),
    ):
        shown = {**passage(1, document, 0, 15), "text": "Built in 1898."}
        trace = {"prompt_tokens": 9, "segments": [shown]}
        assert judged(gold, trace, answers=answers).answered is expected
    some = [judged(gold, trace, answers=["in 1898"]), judged(gold, trace)]
    assert summary(some, 9)["answers"] == 1.0
    assert summary(some[1:], 9)["answers"] is None
    record = {"answers": ["1898", "yes"], "gold": [{"text": "Built in 1898."}]}
    assert literal_answers(record) == ["1898"]


def test_the_same_text_under_two_names_counts_as_one(tmp_path: Path) -> None:
    (tmp_path / "documents").mkdir()
    for name, text in (("a.txt", "one"), ("b.txt", "two"), ("c.txt", "one")):
        (tmp_path / "documents" / name).write_text(text, encoding="utf-8")
    same = twins(tmp_path)
    assert same == {"c.txt": "a.txt"}
    for shown, gold, complete in (("a", "c", True), ("c", "a", True), ("b", "a", False)):
        trace = {"prompt_tokens": 9, "segments": [passage(1, f"{shown}.txt", 0, 3)]}
        assert judged([(f"{gold}.txt", 0, 3)], trace, same).complete is complete


@pytest.mark.model
def test_the_command_measures_a_small_set(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    model_cache: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("CHATBOT_CACHE_DIR", str(model_cache))
    documents = tmp_path / "documents"
    documents.mkdir()
    filler = "There is nothing of note in this line. " * 40
    for number in range(8):
        text = f"{filler}\n\nThe keeper{number} owned a blue lamp.\n\n{filler}"
        (documents / f"{number}.txt").write_text(text, encoding="utf-8")
    questions = [
        {
            "question": f"What did keeper{number} own?",
            "documents": None,
            "gold": [{"document": f"{number}.txt", "text": f"keeper{number} owned a blue lamp"}],
        }
        for number in range(4)
    ]
    lines = [json.dumps(question) for question in questions]
    (tmp_path / "questions.jsonl").write_text("\n".join(lines), encoding="utf-8")
    options = ["--prompt-tokens", "400", "--embedding-model", "none", "--json"]
    assert main([str(tmp_path), *options]) == 0
    figures = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert figures["all"] == figures["chars"] == figures["top1"] == 1.0
    assert (figures["questions"], figures["over_budget"]) == (4, 0)
