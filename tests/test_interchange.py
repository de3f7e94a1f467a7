"""Conversations read from JSON, and traces written as the contract says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from chatbot.errors import InputError
from chatbot.interchange import citation_record, read_conversation, trace_record
from chatbot.messages import Dropped, Notice, PromptTrace, Segment
from retrieval.types import Citation


def written(tmp_path: Path, data: Any) -> Path:
    path = tmp_path / "chat.json"
    path.write_text(json.dumps(data, ensure_ascii=False), encoding="utf-8")
    return path


def test_ids_names_and_times_are_kept(tmp_path: Path) -> None:
    data = {
        "messages": [
            {"id": 7, "role": "user", "name": "민수", "created": "2024-03-15", "content": "안녕"},
            {"id": "b", "role": "assistant", "name": None, "created": None, "content": "네"},
        ],
        "questions": ["ignored"],
    }
    (turn,) = read_conversation(written(tmp_path, data)).turns
    assert turn.message_ids == ("7", "b")
    assert (turn.question, turn.reply) == ("민수: 안녕", "네")
    assert turn.user[0].created == "2024-03-15"


def test_a_wrong_message_is_named_with_its_file(tmp_path: Path) -> None:
    path = written(tmp_path, [{"role": "user", "content": "x"}, {"role": "nobody", "content": "y"}])
    with pytest.raises(InputError) as caught:
        read_conversation(path)
    assert "chat.json" in str(caught.value)
    assert "messages[1]" in str(caught.value)


@pytest.mark.parametrize("content", [b"{", b"\xff\xfe\x00", b"[" * 100_000])
def test_a_damaged_file_is_refused_in_one_sentence(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "chat.json"
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"chat\.json"):
        read_conversation(path)
    with pytest.raises(InputError, match=r"none\.json"):
        read_conversation(tmp_path / "none.json")


def test_a_trace_has_the_keys_of_the_contract_and_no_empty_ones() -> None:
    passage = Segment(
        "passage", 5, "text", document="a.pdf", page=2, start=0, end=4, label="1", score=0.0
    )
    trace = PromptTrace(
        question="질문",
        prompt_tokens=8,
        limit_tokens=10,
        reply_tokens=2,
        segments=(Segment("turn", 3, "", message_ids=("a", "b")), passage),
        dropped=(Dropped(Segment("recalled", 9, "x"), "no room"),),
        notices=(Notice("code", "Sentence."),),
    )
    record = trace_record(trace)
    assert list(record)[:7] == [
        *("question", "prompt_tokens", "limit_tokens", "reply_tokens"),
        *("reused_tokens", "segments", "dropped"),
    ]
    assert record["segments"] == [
        {"kind": "turn", "tokens": 3, "text": "", "message_ids": ["a", "b"]},
        {
            "kind": "passage",
            "tokens": 5,
            "text": "text",
            "document": "a.pdf",
            "page": 2,
            "start": 0,
            "end": 4,
            "label": "1",
            "score": 0.0,
        },
    ]
    assert record["dropped"] == [
        {"kind": "recalled", "tokens": 9, "text": "x", "reason": "no room"}
    ]
    assert json.loads(json.dumps(record)) == record


def test_a_citation_always_has_all_keys() -> None:
    record = citation_record(Citation("1", "a.txt", "id", None, 0, 4, "word"))
    assert record == {
        "label": "1",
        "document": "a.txt",
        "page": None,
        "start": 0,
        "end": 4,
        "quote": "word",
    }
