"""The messages of a request as a conversation: ids that say what is in them, and comparison."""

from __future__ import annotations

import json
from typing import Any

import pytest

from chatbot.api.errors import ApiError
from chatbot.api.given import Asked, asked, conversation_of, differing
from chatbot.api.shapes import parse_request
from chatbot.messages import Message, Turn


def taken(*messages: tuple[str, Any], header: str | None = None, **metadata: str) -> Asked:
    body = {"model": "m", "messages": [{"role": r, "content": c} for r, c in messages]}
    request = parse_request(json.dumps({**body, "metadata": metadata}).encode())
    return asked(request, header)


def stored(question: str, reply: str, finish: Any = "stop") -> Turn:
    said = (Message("a", "assistant", reply),) if reply else ()
    return Turn("t", (Message("u", "user", question),), said, finish=finish)


TALK = (("user", "Hi"), ("assistant", "Hello"), ("user", "Who are you?"), ("assistant", "A bot"))


def test_the_same_chat_one_turn_longer_keeps_all_its_ids() -> None:
    short = conversation_of(taken(*TALK[:2], ("user", "Who are you?")))
    long = conversation_of(taken(*TALK, ("user", "Really?")))
    assert long.id == short.id and long.turns[:1] == short.turns
    assert len({turn.id for turn in long.turns}) == 2
    first = conversation_of(taken(("user", "Hi")))
    assert first.id == short.id, "also from the first question on"


@pytest.mark.parametrize(
    "other",
    [
        (("user", "Hi!"), ("assistant", "Hello"), ("user", "x")),
        (("system", "Be brief."), ("user", "Hi"), ("assistant", "Hello"), ("user", "x")),
        (("user", "H"), ("user", "i"), ("assistant", "Hello"), ("user", "x")),
    ],
)
def test_another_beginning_is_another_chat_with_other_turns(other: Any) -> None:
    one = conversation_of(taken(*TALK[:2], ("user", "x")))
    two = conversation_of(taken(*other))
    assert one.id != two.id
    assert not {t.id for t in one.turns} & {t.id for t in two.turns}


def test_the_same_words_later_are_another_turn() -> None:
    turns = conversation_of(taken(*TALK[:2], *TALK[:2], ("user", "x"))).turns
    assert turns[0].question == turns[1].question and turns[0].id != turns[1].id


def test_messages_after_each_other_and_later_instructions_keep_their_places() -> None:
    one = taken(
        ("system", "A"), ("developer", "B"), ("user", "C"), ("user", "D"), ("assistant", "E"),
        ("system", "F"), ("user", [{"type": "text", "text": "G"}, {"type": "text", "text": "H"}]),
    )  # fmt: skip
    assert one.system == "A\n\nB" and one.question == "G\nH"
    turns = conversation_of(one).turns
    assert [(t.question, t.reply) for t in turns] == [("C\n\nD", "E"), ("system: F", "")]


@pytest.mark.parametrize(
    ("sent", "place"),
    [
        ((), None),
        (TALK, None),
        (TALK[2:], None),
        (TALK[:2], 2),
        ((("user", "Hi "), *TALK[1:]), None),
        ((("user", "Hallo"), *TALK[1:]), 0),
        ((*TALK[:3], ("assistant", "A human")), 3),
        ((*TALK, ("user", "More"), ("assistant", "Yes")), 4),
    ],
)
def test_what_was_sent_is_compared_with_what_is_stored(sent: Any, place: int | None) -> None:
    turns = [stored("Hi", "Hello"), stored("Who are you?", "A bot")]
    assert differing(taken(*sent, ("user", "x")), turns) == place


def test_replies_that_failed_count_or_not_as_the_client_has_it() -> None:
    turns = [stored("Hi", "Hello"), stored("Broken", "", "error"), stored("Who are you?", "A bot")]
    assert differing(taken(*TALK, ("user", "x")), turns) is None
    whole = (*TALK[:2], ("user", "Broken"), *TALK[2:], ("user", "x"))
    assert differing(taken(*whole), turns) is None


def test_the_conversation_and_files_are_named_in_either_place() -> None:
    assert taken(("user", "x"), header="a-1").conversation_id == "a-1"
    assert taken(("user", "x"), header="a", conversation_id="a").conversation_id == "a"
    with pytest.raises(ApiError, match="different conversations"):
        taken(("user", "x"), header="a", conversation_id="b")
    assert taken(("user", "x")).file_ids is None
    assert taken(("user", "x"), file_ids="").file_ids == ()
    part = {"type": "file", "file": {"file_id": "f2"}}
    text = {"type": "text", "text": "x"}
    assert taken(("user", [text, part]), file_ids=" f1, f2,").file_ids == ("f1", "f2")
