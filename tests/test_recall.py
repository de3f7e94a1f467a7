"""Old turns found again, in English and Korean; edits take effect."""

from __future__ import annotations

import pytest

from chatbot.excerpts import MAX_PART_TOKENS, split_message
from chatbot.messages import Conversation, Message, Turn
from chatbot.recall import RecallIndex, RecallIndexes


def words(text: str) -> int:
    return len(text.split())


def turn(number: int, question: str, reply: str = "Noted.") -> Turn:
    user = Message(f"u{number}", "user", question)
    return Turn(f"t{number}", (user,), (Message(f"a{number}", "assistant", reply),))


TURNS = (
    turn(0, "My sister Ada moved to Lisbon in 1998."),
    turn(1, "김하늘은 3월 14일에 서울에서 발표를 한다."),
    turn(2, "The invoice number is INV-20931.", "I will remember INV-20931."),
    turn(3, "What is the weather like?", "I cannot know that."),
)


@pytest.mark.parametrize(
    ("query", "message_id"),
    [
        ("Where did my sister move?", "u0"),
        ("발표는 어디에서?", "u1"),
        ("하늘", "u1"),
        ("서울", "u1"),
        ("invoice number", "u2"),
    ],
)
def test_finds_the_message(query: str, message_id: str) -> None:
    index = RecallIndex(words)
    index.sync(TURNS)
    assert index.search(query)[0].message.id == message_id


def test_decomposed_korean_finds_composed_text() -> None:
    import unicodedata

    index = RecallIndex(words)
    index.sync(TURNS)
    assert index.search(unicodedata.normalize("NFD", "서울에서"))[0].message.id == "u1"


def test_only_turns_before_a_position() -> None:
    index = RecallIndex(words)
    index.sync(TURNS)
    assert index.search("INV-20931")[0].position == 2
    assert index.search("INV-20931", before=3)[0].position == 2
    assert all(e.position < 2 for e in index.search("INV-20931", before=2))


def test_dropped_and_changed_turns_are_forgotten() -> None:
    index = RecallIndex(words)
    index.sync(TURNS)
    index.sync((TURNS[0], turn(9, "Completely different: kangaroo.")))
    assert index.search("INV-20931 invoice") == []
    assert index.search("서울") == []
    assert index.search("kangaroo")[0].message.id == "u9"
    index.sync(TURNS)
    assert index.search("kangaroo") == []
    assert index.search("invoice")[0].message.id == "u2"


def test_nothing_to_search_for() -> None:
    index = RecallIndex(words)
    assert index.search("anything") == []
    index.sync(TURNS)
    assert index.search("???") == []
    assert index.search('"quotes" AND (brackets*') == []


def test_conversations_do_not_see_each_other() -> None:
    indexes = RecallIndexes(words)
    mine = Conversation("mine", turns=TURNS)
    yours = Conversation("yours", turns=(turn(0, "Nothing of interest."),))
    assert indexes.of(mine).search("invoice")
    assert indexes.of(yours).search("invoice") == []


@pytest.mark.parametrize(
    "text",
    [
        "One sentence. " * 200,
        "word " * 3000,
        "x" * 9000,
        "가" * 5000,
        "line\n" * 500,
        "Short.",
    ],
)
def test_parts_join_up_and_stay_small(text: str) -> None:
    def count(part: str) -> int:
        return len(part) // 4 + 1

    parts = split_message(text, count)
    assert "".join(text[a:b] for a, b in parts) == text
    assert all(count(text[a:b]) <= MAX_PART_TOKENS for a, b in parts)


def test_an_empty_message_has_no_part() -> None:
    assert split_message("  \n ", words) == []
