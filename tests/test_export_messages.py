"""Our own export of a chat comes back as it was, and real chats survive import and load."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from store_samples import CITATION, TRACE

from chatbot.errors import InputError
from chatbot.import_messages import export_conversation, parse_messages
from chatbot.messages import (
    Conversation,
    Fact,
    FoldDecision,
    Message,
    Notice,
    RollingSummary,
    Turn,
    Usage,
)
from chatbot.store import Store

MEMORY_CHATS = Path(__file__).resolve().parent.parent.parent / "shared" / "data" / "memory"


def full_chat() -> Conversation:
    turns = (
        Turn("a", (Message("1", "user", "<|eot_id|>", "김"), Message("2", "user", "또"))),
        # Without a reply, so that grouping alone would join it with the next one.
        Turn("b", (Message("3", "user", "stopped"),), finish="cancelled", created="2024"),
        Turn(
            "c",
            (Message("4", "user", "q", created="1999"),),
            (Message("5", "assistant", "r"), Message("6", "assistant", "s", "Bot")),
            citations=(CITATION,),
            usage=Usage(1, 2, 3, 0.25, 0.5),
            finish="length",
            reply_token_ids=(1, 2),
            tokenizer_name="llama3",
            notices=(Notice("cut", "Cut.", {"n": 1}),),
            unsupported=("No.",),
            best_sentence=CITATION,
            trace=TRACE,
        ),
    )
    facts = (
        Fact("f", "a", "1", True, id="f1", earlier="e"),
        Fact("g", "", "", id="u", edited=True),
    )
    summary = RollingSummary("S", 2, 3, facts, "edited", "2025", kept="S", deleted=("f0",))
    decisions = (
        FoldDecision("2024", 1, False, None, ("is empty",)),
        FoldDecision("2025", 2, True, "model", ("passed every check",), "S"),
    )
    chat = Conversation("id", "제목", turns, summary, "sys", "2020", "2021", ("d1", "d2"))
    return replace(chat, decisions=decisions)


def test_our_export_comes_back_as_it_was(tmp_path: Path) -> None:
    chat = full_chat()
    exported = json.loads(json.dumps(export_conversation(chat), ensure_ascii=False))
    assert parse_messages(exported) == chat
    assert set(exported["messages"][0]) == {"id", "role", "name", "created", "content"}
    with Store(tmp_path / "chats.db") as store:
        stored = store.import_conversation(parse_messages(exported))
        again = parse_messages(export_conversation(store.load_whole(stored.id)))
        assert again == replace(chat, updated=stored.updated)
    with Store(tmp_path / "other.db") as store:
        store.import_conversation(again)
        assert store.load_whole("id") == replace(again, updated=store.load("id").updated)


def test_an_export_with_a_message_taken_out_says_so() -> None:
    exported = export_conversation(full_chat())
    del exported["messages"][2]
    with pytest.raises(InputError, match=r"turns\[1\] does not name"):
        parse_messages(exported)
    del exported["turns"], exported["summary"]
    assert len(parse_messages(exported).turns) == 1


_CONTENT = st.text(st.characters(), max_size=20) | st.sampled_from(
    ["", "\0", "\ud83d", "👩‍👩‍👧 🇰🇷"]
)
_MESSAGE = st.fixed_dictionaries(
    {"role": st.sampled_from(["user", "assistant", "system", "tool"]), "content": _CONTENT},
    optional={"name": st.none() | _CONTENT, "created": st.none() | st.integers() | _CONTENT},
)


@given(st.lists(_MESSAGE, max_size=12))
@hypothesis_settings(deadline=None, max_examples=150)
def test_no_text_is_lost_and_exports_are_inverse(messages: list[dict[str, Any]]) -> None:
    chat = parse_messages(messages)
    system_first = messages[: _n_leading(messages)]
    kept = [m.content for t in chat.turns for m in (*t.user, *t.assistant)]
    assert len(kept) == len(messages) - len(system_first)
    for content, message in zip(kept, messages[len(system_first) :], strict=True):
        assert len(content) <= len(message["content"])
        content.encode("utf-8")
    for turn in chat.turns[1:]:
        assert turn.user
    written = json.dumps(export_conversation(chat), ensure_ascii=False).encode("utf-8")
    assert parse_messages(json.loads(written)) == chat


def _n_leading(messages: list[dict[str, Any]]) -> int:
    return next((n for n, m in enumerate(messages) if m["role"] != "system"), len(messages))


def test_real_chats_are_imported_and_loaded_identically(tmp_path: Path) -> None:
    files = sorted(MEMORY_CHATS.glob("*/*.json"))
    if not files:
        pytest.skip("no real chats in ../shared/data/memory")
    n_messages = 0
    with Store(tmp_path / "chats.db") as store:
        for file in files:
            raw = json.loads(file.read_text(encoding="utf-8"))
            parsed = parse_messages(raw)
            stored = store.import_conversation(parsed)
            assert store.load(stored.id) == stored
            assert [(t.user, t.assistant, t.created) for t in stored.turns] == [
                (t.user, t.assistant, t.created) for t in parsed.turns
            ]
            kept = [(m.id, m.role, m.name, m.created, m.content) for m in _messages(stored)]
            keys = ("id", "role", "name", "created", "content")
            assert kept == [tuple(m.get(key) for key in keys) for m in raw["messages"]]
            n_messages += len(kept)
    print(f"{len(files)} chats, {n_messages} messages")


def _messages(conversation: Conversation) -> list[Message]:
    return [m for t in conversation.turns for m in (*t.user, *t.assistant)]
