"""Old turns found again, in English and Korean; edits take effect."""

from __future__ import annotations

import time

import pytest

from chatbot.excerpts import MAX_PART_TOKENS, several_voices, split_message
from chatbot.messages import Conversation, Message, Turn
from chatbot.recall import RecallIndex
from chatbot.recall_indexes import RecallIndexes


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


def spoken(number: int, name: str, text: str) -> Turn:
    """A turn of a transcript: somebody speaks, somebody else says a word or two."""
    said = Message(f"u{number}", "user", text, name=name)
    return Turn(f"t{number}", (said,), (Message(f"a{number}", "assistant", "Yes.", name="Bo"),))


def found(turns: list[Turn] | tuple[Turn, ...], question: str, limit_tokens: int) -> list[str]:
    index = RecallIndex(words)
    index.sync(turns)
    return [e.message.id for e in index.search(question, limit_tokens=limit_tokens)]


@pytest.mark.parametrize(
    ("topic", "middle", "other", "question"),
    [
        (
            "The budget for the remote control is the question.",
            "Well, I would rather pay twelve.",
            "We could paint the walls of the office in spring.",
            "What was said about the budget for the remote control?",
        ),
        (
            "리모컨 예산이 문제입니다.",
            "글쎄요, 저는 열두 개가 낫다고 봅니다.",
            "봄에 사무실 벽을 칠할 수 있습니다.",
            "리모컨 예산에 대해 무엇을 이야기했나요?",
        ),
    ],
)
def test_a_transcript_comes_back_as_a_stretch_of_talk(
    topic: str, middle: str, other: str, question: str
) -> None:
    names = ("Ann", "Cy", "Di")
    lines = [other] * 120
    lines[60], lines[61], lines[62] = topic, middle, topic
    turns = [spoken(n, names[n % 3], text) for n, text in enumerate(lines)]
    assert {"u60", "a60", "u61", "a61", "u62"} <= set(found(turns, question, 60))


def test_the_same_remarks_of_one_user_are_no_transcript() -> None:
    turns = [turn(n, "We could paint the walls of the office in spring.") for n in range(60)]
    turns[30] = turn(30, "The budget for the remote control is 20 dollars.")
    assert found(turns, "What is the budget for the remote control?", 400)[0] == "u30"


@pytest.mark.parametrize(
    ("question", "wanted"),
    [
        ("What did you recommend for my sourdough starter?", "a5"),
        ("What did I say about my sourdough starter?", "u5"),
        ("빵 반죽에 대해 뭐라고 추천해 줬지?", "a7"),
        ("내가 빵 반죽에 대해 뭐라고 했지?", "u7"),
    ],
)
def test_what_was_replied_is_found_when_it_is_asked_for(question: str, wanted: str) -> None:
    turns = [turn(n, f"Tell me a joke about number {n}.", "Here is one.") for n in range(40)]
    turns[5] = turn(
        5,
        "My sourdough starter smells odd.",
        "Feed the sourdough starter twice a day and keep it warm.",
    )
    turns[7] = turn(7, "빵 반죽이 너무 질어요.", "빵 반죽에는 밀가루를 조금씩 더 넣으세요.")
    assert found(turns, question, 200)[0] == wanted


def test_borrowed_words_count_less_than_those_of_the_question() -> None:
    turns = [turn(n, f"Tell me a joke about number {n}.") for n in range(40)]
    turns[3] = turn(3, "The engine needs oil.")
    turns[33] = turn(33, "The parrot wants nuts today.")
    index = RecallIndex(words)
    index.sync(turns)
    query = "And the engine oil? parrot nuts today"
    assert index.search(query)[0].message.id == "u33"
    assert index.search(query, question="And the engine oil?")[0].message.id == "u3"


def test_what_people_ask_of_each_other_in_a_transcript_is_no_standing_instruction() -> None:
    turns = [spoken(n, ("Ann", "Cy")[n % 2], "We paint the walls.") for n in range(60)]
    turns[2] = spoken(2, "Ann", "Always close the door when I ask about money.")
    assert "u2" not in found(turns, "What was said about the walls?", 40)


def test_results_keep_within_the_tokens_asked_for() -> None:
    turns = [turn(n, f"The parrot number {n} likes nuts.") for n in range(200)]
    index = RecallIndex(words)
    index.sync(turns)
    for limit in (6, 50, 333):
        taken = index.search("parrot nuts", limit_tokens=limit)
        assert sum(e.tokens for e in taken) <= limit
        assert len(taken) >= limit // 6 - 1


def test_names_of_two_sides_and_of_tools_make_no_transcript() -> None:
    ann = Message("1", "user", "Hi", name="Ann")
    helper = Message("2", "assistant", "Hello", name="Helper")
    tool = Message("3", "user", "{}", name="system")
    assert not several_voices([ann, helper, tool, ann, helper])
    assert several_voices([ann, helper, Message("4", "user", "Hey", name="Bo")])
    assert not several_voices([])


def test_a_long_chat_is_indexed_and_searched_in_time() -> None:
    reply = " ".join(
        f"Sentence {n} of a long reply about plans and their costs." for n in range(30)
    )
    turns = [turn(n, f"What about plan {n} for the garden?", reply) for n in range(600)]
    index = RecallIndex(words)
    started = time.process_time()
    index.sync(turns)
    assert time.process_time() - started < 15
    took = []
    for n in range(5):
        started = time.process_time()
        assert index.search(f"What did I ask about plan {100 + n} and its costs?")
        took.append(time.process_time() - started)
    assert min(took) < 0.06


def test_a_short_answer_comes_back_with_the_question_before_it() -> None:
    turns = [turn(n, f"Tell me a joke about number {n}.", "Here is one.") for n in range(40)]
    turns[7] = turn(7, "I am planning a party.", "Which colour should the balloons be?")
    turns[8] = turn(8, "Yes, make them turquoise, please.")
    index = RecallIndex(words)
    index.sync(turns)
    taken = [e.message.id for e in index.search("turquoise", limit_tokens=40)]
    assert taken[:2] == ["u8", "a7"]
    assert [e.message.id for e in index.search("turquoise", limit_tokens=7)] == ["u8"]


def test_what_can_be_understood_alone_comes_back_alone() -> None:
    turns = [turn(n, f"Tell me a joke about number {n}.", "Here is one.") for n in range(40)]
    turns[8] = turn(8, "Grandmother Wilhelmina bought seven turquoise balloons in Antwerp.")
    taken = found(turns, "turquoise", 40)
    assert taken[0] == "u8" and "a7" not in taken


def test_a_turn_that_vanishes_in_the_middle_is_gone_and_the_others_keep_their_places() -> None:
    index = RecallIndex(words)
    index.sync(TURNS)
    index.sync(TURNS[:2] + TURNS[3:])
    assert index.search("INV-20931 invoice number") == []
    assert index.search("weather")[0].position == 2
    fresh = RecallIndex(words)
    fresh.sync(TURNS[:2] + TURNS[3:])
    for query in ("weather", "sister", "발표"):
        assert index.search(query) == fresh.search(query)


def test_only_turns_that_differ_are_read_again() -> None:
    read: list[str] = []

    def counted(text: str) -> int:
        read.append(text)
        return words(text)

    turns = [turn(n, f"Number {n}: my parrot weighs {n} grams, he likes nuts.") for n in range(40)]
    index, fresh = RecallIndex(counted), RecallIndex(words)
    index.sync(turns)
    for changed in (
        turns[:3] + turns[4:],  # forgotten
        turns,  # and, as after a switch of versions, back
        [*turns[:10], turn(77, "A new question about nuts."), *turns[11:]],
    ):
        read.clear()
        index.sync(changed)
        fresh.sync(changed)
        assert len(read) <= 12
        query = "How many grams does the parrot of number 30 weigh?"
        assert index.search(query) == fresh.search(query)
