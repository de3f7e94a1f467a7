"""No message of a ChatGPT export is lost without a word, whatever tree its places form."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from chatbot.errors import InputError
from chatbot.import_chatgpt import ChatFile, parse_chatgpt
from chatbot.import_tree import tree_of


def chat(places: dict[str, tuple[str | None, str]], current: str | None) -> dict[str, Any]:
    """A chat of places, each with its parent and its speaker: u, a, or - for no message."""
    roles = {"u": "user", "a": "assistant"}
    mapping = {
        name: {
            "parent": parent,
            "message": {"author": {"role": roles[who]}, "content": {"parts": [f"says {name}"]}}
            if who in roles
            else None,
        }
        for name, (parent, who) in places.items()
    }
    return {"title": "T", "conversation_id": "c", "mapping": mapping, "current_node": current}


def texts(read: ChatFile) -> list[str]:
    """Of all chats and their versions, each once."""
    turns = [
        turn
        for one in read.chats
        for turn in (*one.turns, *(t for branch in one.branches for t in branch.turns))
    ]
    return sorted({m.content for t in turns for m in (*t.user, *t.assistant)})


TALK = {"r": (None, "-"), "u": ("r", "u"), "a": ("u", "a"), "v": ("a", "u"), "b": ("v", "a")}


@pytest.mark.parametrize("current", ["r", "u", "a", "v", "b", "gone", None])
def test_a_chat_that_was_left_at_any_place_comes_whole(current: str | None) -> None:
    read = parse_chatgpt([chat(TALK, current)])
    assert [t.reply for t in read.chats[0].turns] == ["says a", "says b"]
    assert read.left_out == read.changed == ()


def test_what_is_left_behind_an_end_without_a_message_is_the_rest_of_the_chat() -> None:
    read = parse_chatgpt([chat({**TALK, "end": ("a", "-")}, "end")])
    assert [t.reply for t in read.chats[0].turns] == ["says a", "says b"]
    other = parse_chatgpt([chat({**TALK, "x": (None, "-")}, "x")])
    assert len(other.chats[0].turns) == 2


def test_the_newest_end_is_taken_where_none_is_shown() -> None:
    given_chat = chat({**TALK, "c": ("v", "a")}, "r")
    for name, time in (("b", 1700000009.0), ("c", 1700000005.0)):
        given_chat["mapping"][name]["message"]["create_time"] = time
    (one,) = parse_chatgpt([given_chat]).chats
    assert one.turns[1].reply == "says b"
    assert [branch.turns[0].reply for branch in one.branches] == ["says c"]


def test_messages_in_a_circle_beside_a_good_branch_are_named() -> None:
    aside = {"x": ("y", "u"), "y": ("x", "u"), "z": ("y", "a")}
    read = parse_chatgpt([chat({**TALK, **aside}, "z")])
    assert len(read.chats[0].turns) == 2
    assert read.changed == ("[0] T: Messages that are their own ancestors were left out: 3.",)


def test_a_chat_in_which_nothing_is_shown_is_named() -> None:
    read = parse_chatgpt([chat({"r": (None, "-")}, "r"), chat(TALK, "b"), chat({}, None)])
    reason = "there is no message in it that ChatGPT shows."
    assert read.left_out == (f"[0] T: {reason}", f"[2] T: {reason}")
    with pytest.raises(InputError, match="no message in it"):
        parse_chatgpt([chat({}, None)])


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ({"content": {"parts": "Hello"}}, "Hello"),
        ({"content": {"content_type": "thoughts", "thoughts": "Hm."}}, "thoughts: Hm."),
        ({"content": {"content_type": "computer_output", "screenshot": {"x": 1}}}, None),
        ({"content": {}, "metadata": {"attachments": [{"name": "a.pdf"}]}}, "[a.pdf]"),
        ({"content": {"content_type": "poll", "parts": [{"content_type": "poll"}]}}, "[poll]"),
    ],
)
def test_what_is_no_text_leaves_at_least_a_mark(message: dict[str, Any], shown: str | None) -> None:
    given_chat = chat(TALK, "b")
    given_chat["mapping"]["a"]["message"] = {"author": {"role": "assistant"}} | message
    (one,) = parse_chatgpt([given_chat]).chats
    assert one.turns[0].reply == (shown or "[computer_output]")


def test_a_message_that_is_none_and_an_id_that_is_none_cost_no_chat() -> None:
    given_chat = chat(TALK, "b") | {"conversation_id": ["x"], "id": "other"}
    given_chat["mapping"]["r"]["message"] = "Hello"
    read = parse_chatgpt([given_chat])
    assert read.chats[0].id == "other"
    assert read.changed == ("[0] T: Messages that are no object were left out: 1.",)


NAMES = ("r", "a", "b", "c", "d", "e", "f")
PARENT = st.none() | st.sampled_from((*NAMES, "gone"))
PLACES = st.dictionaries(
    st.sampled_from(NAMES), st.tuples(PARENT, st.sampled_from("uua-")), max_size=7
)


@hypothesis_settings(max_examples=150, deadline=None, database=None, derandomize=True)
@given(PLACES, PARENT)
def test_every_message_is_there_or_named(
    places: dict[str, tuple[str | None, str]], current: str | None
) -> None:
    given_chat = chat(places, current)
    said = {name for name, (_, who) in places.items() if who != "-"}
    lost = tree_of({name: parent for name, (parent, _) in places.items()}, said).circling
    if not said - set(lost):
        with pytest.raises(InputError):
            parse_chatgpt([given_chat])
        return
    read = parse_chatgpt([given_chat])
    assert texts(read) == sorted(f"says {name}" for name in said - set(lost))
    told = f"[0] T: Messages that are their own ancestors were left out: {len(lost)}."
    assert read.changed == ((told,) if lost else ())
    for name in lost:
        assert _goes_round(places, name)


def _goes_round(places: dict[str, tuple[str | None, str]], name: str | None) -> bool:
    for _ in range(len(places) + 1):
        name = places[name][0] if name in places else None
    return name is not None
