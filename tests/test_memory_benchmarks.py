"""The measuring commands of the memory judge as they say: whole messages, parts, rewrites."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks import followup_queries, memory_speed
from benchmarks.memory_evidence import evidence_tokens, judged, summary, wanted
from chatbot.engine.scripted import ScriptedTokenizer

LONG = " ".join(f"word{n}" for n in range(300))
TEXTS = {"1": "A short remark.", "2": LONG}


def segment(text: str, *ids: str, **more: Any) -> dict[str, Any]:
    return {"kind": "recalled", "text": text, "message_ids": list(ids), **more}


def held(message_id: str, *segments: dict[str, Any]) -> tuple[int, int]:
    return evidence_tokens(message_id, TEXTS, {"segments": list(segments)}, ScriptedTokenizer())


def test_a_whole_message_is_held_whole_behind_any_header() -> None:
    for text in ("[User, May] A short remark.\n", "Ann: A short remark.\n", "A short remark."):
        part, whole = held("1", segment(text, "1"))
        assert part == whole > 0
    assert held("1", segment("A short remark.", "2"))[0] == 0


def test_parts_of_a_message_add_up_and_other_text_does_not_count() -> None:
    first, second = LONG[:400], LONG[400:900]
    segments = [
        segment(f"[User] {first}\n", "2", start=0, end=400),
        segment(f"[User] {second}\n", "2", start=400, end=900),
    ]
    one, whole = held("2", segments[0])
    assert 0 < one < held("2", *segments)[0] < whole
    assert held("2", segment("[User] something else", "2", start=0, end=400))[0] == 0


def test_figures_of_a_set() -> None:
    data = {
        "messages": [{"id": i, "content": text} for i, text in TEXTS.items()],
        "questions": [
            {"id": "a", "question": "?", "category": "x", "evidence": ["1", "2"]},
            {"id": "b", "question": "?", "category": "abstention", "evidence": ["1"]},
            {"id": "c", "question": "?", "category": "x", "evidence": []},
        ],
    }
    assert [q["id"] for q in wanted(data)] == ["a"]
    trace = {"prompt_tokens": 9, "segments": [segment("Ann: A short remark.\n", "1")]}
    report = summary(list(judged(data, [trace], ScriptedTokenizer(), 8)))
    assert (report["any"], report["all"], report["over_budget"]) == (1.0, 0.0, 1)
    assert 0 < report["share"] < 0.5


def test_follow_ups_of_a_topic(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def topics(*said: str, **rewrites: str) -> list[dict[str, Any]]:
        turns = [{"number": n, "raw_utterance": text} for n, text in enumerate(said, 1)]
        for turn in turns:
            turn["manual_rewritten_utterance"] = rewrites.get(f"r{turn['number']}")
        return [{"number": 7, "turn": turns}]

    files = {
        followup_queries.TOPICS_2020: json.dumps(
            topics("What are goats?", "Do they bite?", r2="Do goats bite?")
        )
    }
    for path, resolved in followup_queries.RESOLVED_2019:
        files[path] = json.dumps(topics("What is honey?", "Is it sweet?", "Never rewritten."))
        files[resolved] = "7_1\tWhat is honey?\n7_2\tIs honey sweet?\n"
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    assert followup_queries.main([str(tmp_path), "--json"]) == 0
    report = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (report["questions"], report["share"], report["raw"]) == (3, 1.0, 0.5)
    assert report["years"]["2020"]["questions"] == 1


def test_speeds_are_reported_under_the_names_of_the_issue(
    capsys: pytest.CaptureFixture[str],
) -> None:
    pytest.importorskip("llama_models", reason="needs the package llama-models (requirements-dev)")
    sizes = ["--turns", "24", "--assembled-turns", "30", "--embedder", "scripted"]
    assert memory_speed.main([*sizes, "--json"]) == 0
    report = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (report["turns"], report["assembled_turns"]) == (24, 30)
    for name in ("retrieval_ms", "retrieval_words_ms", "import_s", "assemble_ms"):
        assert report[name] > 0 and report["cpu"][name] > 0
    assert report["assemble_ms"] < 1000 and report["import_s"] < 60
