"""Chats from JSON: grouping into turns, kept texts, and sentences for wrong shapes."""

from __future__ import annotations

import argparse
import importlib
import io
import json
from pathlib import Path
from typing import Any

import pytest

from chatbot.console import Console
from chatbot.errors import InputError
from chatbot.import_messages import parse_messages
from chatbot.interchange import read_conversation, read_conversations
from chatbot.messages import (
    Conversation,
    Message,
)
from chatbot.settings import Settings

MEMORY_CHATS = Path(__file__).resolve().parent.parent.parent / "shared" / "data" / "memory"


def said(*pairs: tuple[str, str]) -> list[dict[str, Any]]:
    return [{"role": role, "content": content} for role, content in pairs]


def shape(conversation: Conversation) -> list[tuple[str, str]]:
    """The texts of each turn's sides, joined by bars."""
    return [
        ("|".join(m.content for m in t.user), "|".join(m.content for m in t.assistant))
        for t in conversation.turns
    ]


# What other programs write


def test_what_is_no_text_leaves_a_mark_and_is_told() -> None:
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    call = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": "{}"}}
    messages: list[dict[str, Any]] = [
        {"id": "a", "role": "user", "content": [{"type": "text", "text": "What is this?"}, image]},
        {"id": "b", "role": "assistant", "content": None, "tool_calls": [call]},
        {"id": "b", "role": "tool", "content": "12 °C"},
        {"role": "assistant", "content": None},
        {"id": "b'", "role": "user", "content": [image, {"type": "input_audio"}]},
        {"id": "b", "role": "assistant", "content": "It is a cat."},
    ]
    told: list[str] = []
    chat = parse_messages(messages, told)
    said_now = [m for t in chat.turns for m in (*t.user, *t.assistant)]
    texts = [m.content for m in said_now]
    assert texts[0] == "What is this?\n[image]" and "weather" in texts[1]
    assert texts[2:] == ["12 °C", "", "[image]\n[input_audio]", "It is a cat."]
    ids = [m.id for m in said_now]
    assert ids[:2] == ["a", "b"] and ids[4] == "b'" and len(set(ids)) == len(ids)
    assert told == [
        "Parts of messages that are no text were left out: 2 of type 'image_url', 1 of type "
        "'input_audio'.",
        "Messages with null for their text are empty: 1.",
        "Messages with the id of an earlier one have a new id: 2.",
    ]
    with pytest.raises(InputError, match="only text parts"):
        parse_messages(messages)


def test_the_import_command_says_what_it_changed(tmp_path: Path) -> None:
    file = tmp_path / "chat.json"
    part = {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}
    file.write_text(json.dumps([{"role": "user", "content": [part]}]), encoding="utf-8")
    found = read_conversations(file)
    assert found.changed and "1 of type 'image_url'" in found.changed[0]
    assert read_conversation(file).turns[0].question == "[image]"
    out = io.StringIO()
    console = Console(out, io.StringIO())
    arguments = argparse.Namespace(files=[file], json=True)
    command = importlib.import_module("chatbot.commands.import")
    assert command.run(arguments, Settings(data_dir=tmp_path), console) == 0
    assert [json.loads(line).get("file") for line in out.getvalue().splitlines()] == [
        None,
        "chat.json",
    ]


# Grouping


@pytest.mark.parametrize(
    ("roles", "turns"),
    [
        ("", []),
        ("ua", [("0", "1")]),
        ("uuaaua", [("0|1", "2|3"), ("4", "5")]),
        ("aau", [("", "0|1"), ("2", "")]),
        ("usa", [("0|1", "2")]),
        ("usaau", [("0|1", "2|3"), ("4", "")]),
        ("uasa", [("0", "1"), ("2", "3")]),
        ("uatda", [("0", "1"), ("2|3", "4")]),
        ("tua", [("0|1", "2")]),
    ],
)
def test_runs_become_turns(roles: str, turns: list[tuple[str, str]]) -> None:
    names = {"u": "user", "a": "assistant", "s": "system", "t": "tool", "d": "developer"}
    chat = parse_messages(said(*((names[role], str(n)) for n, role in enumerate(roles))))
    assert shape(chat) == turns
    assert chat.system_text is None
    assert [turn.id for turn in chat.turns] == [f"t{n + 1}" for n in range(len(turns))]


def test_leading_system_messages_become_the_system_text() -> None:
    pairs = (("system", "Be brief."), ("developer", "Be kind."), ("user", "x"), ("system", "Now"))
    chat = parse_messages(said(*pairs))
    assert chat.system_text == "Be brief.\n\nBe kind."
    assert [(m.role, m.name, m.content) for m in chat.turns[0].user] == [
        ("user", None, "x"),
        ("user", "system", "Now"),
    ]
    named = {"role": "tool", "name": "weather", "content": "12 °C"}
    assert parse_messages([named]).turns[0].user[0].spoken == "weather: 12 °C"


def test_ids_names_and_times_are_kept() -> None:
    messages = [
        {"id": 7, "role": "user", "name": "김", "created": 1700000000, "content": "a"},
        {"id": "x", "role": "assistant", "name": None, "created": "3월 15일", "content": ""},
        {"id": 0, "role": "user", "created": 1.5, "content": "b"},
        {"id": "", "role": "assistant", "created": None, "content": "c"},
        {"id": 3.0, "role": "assistant", "content": "d", "extra": "ignored"},
    ]
    chat = parse_messages({"id": 12, "title": "T", "messages": messages, "questions": []})
    assert (chat.id, chat.title) == ("12", "T")
    assert [m for t in chat.turns for m in (*t.user, *t.assistant)] == [
        Message("7", "user", "a", "김", "2023-11-14T22:13:20.000+00:00"),
        Message("x", "assistant", "", None, "3월 15일"),
        Message("0", "user", "b", None, "1970-01-01T00:00:01.500+00:00"),
        Message("m4", "assistant", "c"),
        Message("3", "assistant", "d"),
    ]


def test_given_ids_never_clash_with_generated_ones() -> None:
    chat = parse_messages(
        [*said(("user", "a"), ("user", "b")), {"id": "m1", "role": "user", "content": "c"}]
    )
    ids = chat.turns[0].message_ids
    assert ids[1:] == ("m2", "m1")
    assert len(set(ids)) == 3


@pytest.mark.parametrize(
    ("message", "text"),
    [
        ({"content": [{"type": "text", "text": "a"}, {"type": "input_text", "text": "b"}]}, "a\nb"),
        ({"content": []}, ""),
        ({"content": None, "refusal": "I can't."}, "I can't."),
        ({"content": "ok", "tool_calls": [{"id": "날씨"}]}, 'ok\n[{"id": "날씨"}]'),
        ({"content": "nul \0 half \ud835 pair \ud83d\ude00"}, "nul \ufffd half \ufffd pair 😀"),
    ],
)
def test_contents(message: dict[str, Any], text: str) -> None:
    chat = parse_messages([{"role": "assistant", **message}])
    assert chat.turns[0].assistant[0].content == text


# Wrong shapes


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (None, "A chat must be a list"),
        ("x", "A chat must be a list"),
        ({}, "A chat must be a list"),
        ({"messages": {}}, "A chat must be a list"),
        (["x"], "messages[0] is a text"),
        ([*said(("user", "a")), None], "messages[1] is null"),
        ([{"content": "x"}], "messages[0] has no 'role'; expected system, user or assistant."),
        ([{"role": "bot", "content": "x"}], "messages[0] has the role 'bot'; expected system"),
        ([{"role": ["user"], "content": "x"}], "messages[0] has the role ['user']"),
        ([{"role": "user"}], "messages[0] has no 'content'"),
        ([{"role": "user", "content": 5}], "messages[0].content is a number"),
        ([{"role": "user", "content": ["x"]}], "messages[0].content[0] is not a part"),
        ([{"role": "user", "content": [{"type": "text"}]}], "messages[0].content[0] has no 'text'"),
        (
            [{"role": "user", "content": [{"type": "image_url", "image_url": {}}]}],
            "messages[0].content[0] is of type 'image_url'; only text parts",
        ),
        ([{"role": "user", "content": "x", "id": []}], "messages[0].id is a list"),
        ([{"role": "user", "content": "x", "id": True}], "messages[0].id is true or false"),
        ([{"role": "user", "content": "x", "name": 1}], "messages[0].name is a number"),
        ([{"role": "user", "content": "x", "created": {}}], "messages[0].created is an object"),
        (
            [{"role": "user", "content": "x", "created": float("nan")}],
            "messages[0].created is a number",
        ),
        (
            [{"id": n, "role": "user", "content": "x"} for n in ("a", "b", 1, "b", "1")],
            "messages[3] has the same id 'b' as messages[1]",
        ),
        ({"messages": [], "system": 1}, "'system' of the chat is a number"),
        ({"messages": [], "title": []}, "'title' of the chat is a list"),
        ({"messages": [], "document_ids": "x"}, "'document_ids' of the chat is a text"),
        ({"messages": [], "summary": "x"}, "summary is not as an export has it"),
        (
            {"messages": [], "summary": {"text": "x", "covers": 1, "tokens": 1}},
            "covers 1 turns of 0",
        ),
        ({"messages": [], "summary": {"text": "x", "covers": 0, "tokens": 2**40}}, "tokens"),
        ({"messages": [], "turns": {}}, "'turns' is not a list"),
        ({"messages": [], "turns": [{}]}, "turns[0] has no list 'message_ids'"),
        ({"messages": [], "turns": [{"message_ids": ["x"]}]}, "turns[0] does not name"),
        ({"messages": said(("user", "x")), "turns": []}, "No turn names the message 'm1'"),
        (
            {
                "messages": said(("user", "x")),
                "turns": [{"id": "t", "message_ids": ["m1"], "finish": "?"}],
            },
            "turns[0].finish is not as an export has it",
        ),
        (
            {
                "messages": said(("assistant", "x"), ("user", "y")),
                "turns": [{"id": "t", "message_ids": ["m1", "m2"]}],
            },
            "turns[0] has an answer before its question",
        ),
    ],
)
def test_wrong_shapes_name_the_place(data: object, sentence: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_messages(data)
    assert sentence in str(caught.value)
    assert str(caught.value).endswith(".")
