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


def test_runs_of_one_side_become_one_turn(tmp_path: Path) -> None:
    roles = ["assistant", "user", "user", "assistant", "assistant", "user"]
    data = [{"role": role, "content": str(n)} for n, role in enumerate(roles)]
    turns = read_conversation(written(tmp_path, data)).turns
    sides = [([m.content for m in t.user], [m.content for m in t.assistant]) for t in turns]
    assert sides == [([], ["0"]), (["1", "2"], ["3", "4"]), (["5"], [])]
    assert [i for t in turns for i in t.message_ids] == [f"m{n}" for n in range(1, 7)]


def test_system_messages_become_the_system_text(tmp_path: Path) -> None:
    data = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "Hi"}]},
        {"role": "developer", "content": "Be kind."},
    ]
    conversation = read_conversation(written(tmp_path, data))
    assert conversation.system_text == "Be brief.\n\nBe kind."
    assert conversation.turns[0].question == "Hi"


@pytest.mark.parametrize(
    ("data", "named"),
    [
        pytest.param({"chat": []}, "messages", id="no_messages"),
        pytest.param(["hello"], "Message 1", id="no_object"),
        pytest.param([{"role": "tool", "content": "x"}], "'tool'", id="other_role"),
        pytest.param([{"role": ["user"], "content": "x"}], "role", id="role_of_another_type"),
        pytest.param([{"role": "user", "content": None}], "content", id="no_text"),
        pytest.param(
            [{"role": "user", "content": [{"type": "image_url"}]}], "content", id="an_image"
        ),
        pytest.param([{"id": 1, "role": "user", "content": "x"}] * 2, "id '1'", id="same_id"),
    ],
)
def test_another_shape_is_refused_in_one_sentence(data: Any, named: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        read_conversation(written(tmp_path, data))
    assert named in str(caught.value)


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
