"""What is searched for: follow-ups borrow words, questions that stand alone stay as they are."""

from __future__ import annotations

import pytest

from chatbot.messages import Message, Turn
from chatbot.query import asks_for_reply, leans_on_earlier_turns, search_query


def turn(question: str, reply: str = "") -> Turn:
    user = Message("u", "user", question)
    return Turn("t", (user,), (Message("a", "assistant", reply),) if reply else ())


@pytest.mark.parametrize(
    "question",
    [
        "How much oil does it take?",
        "what about the other role?",
        "yes",
        "And the second one?",
        "그건 얼마야?",
        "두 번째는?",
        "네",
        "그럼 보증 기간은?",
    ],
)
def test_follow_ups_borrow_the_topic(question: str) -> None:
    """BC-71: the fragment alone would find the wrong sources."""
    korean = any("가" <= c <= "힣" for c in question)
    topic = "엔진 K-200의 오일 용량은 얼마인가요?" if korean else "Which oil for the engine K-200?"
    query = search_query(question, [turn(topic, "5W-30.")])
    assert query.startswith(question)
    assert "K-200" in query


@pytest.mark.parametrize(
    "question",
    [
        "When was the University of Lisbon founded?",
        "How many employees does Hanbit Electronics have in Busan?",
        "대한민국 헌법 제1조의 내용은 무엇인가요?",
        "부산에 있는 한빛전자 공장의 직원 수는 몇 명인가요?",
    ],
)
def test_questions_that_stand_alone_are_searched_as_they_are(question: str) -> None:
    """BC-71: no over-eager rewriting."""
    assert not leans_on_earlier_turns(question)
    assert search_query(question, [turn("Which oil for the engine K-200?")]) == question


def test_a_chain_of_follow_ups_reaches_back_to_the_topic() -> None:
    turns = [
        turn("Tell me about the engine K-200."),
        turn("How heavy is it?"),
        turn("And how old?"),
    ]
    assert "K-200" in search_query("Is it loud?", turns)


def test_first_question_has_nothing_to_borrow() -> None:
    assert search_query("yes", []) == "yes"


@pytest.mark.parametrize(
    "question",
    [
        "How many days are there between my first sprint and the deadline of the second?",
        "Why did the marketing team think that they should aim at young people?",
        "How should I structure my cover letter to show its strengths?",
        "Which features of the remote control do users want when they watch television?",
    ],
)
def test_a_pointing_word_that_means_something_in_the_question_is_no_follow_up(
    question: str,
) -> None:
    assert search_query(question, [turn("Which oil for the engine K-200?")]) == question


def test_the_subject_is_found_behind_questions_that_could_stand_alone() -> None:
    said = [
        "Tell me about the Bronze Age collapse.",
        "What is the evidence for it?",
        "Who were the Sea Peoples?",
        "What other factors led to a breakdown of trade?",
    ]
    assert "Bronze" in search_query("What came after it?", [turn(text) for text in said])


def test_messages_of_one_side_in_a_row_are_each_a_question() -> None:
    said = tuple(
        Message(f"u{n}", "user", text)
        for n, text in enumerate(["Tell me about the engine K-200.", "How heavy is it?"])
    )
    assert "K-200" in search_query("Is it loud?", [Turn("t", said)])


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("What did you recommend for my resume?", True),
        ("Which of your suggestions was about the title?", True),
        ("You told me about a library, which one was it?", True),
        ("네가 추천해 준 책이 뭐였지?", True),
        ("아까 알려줬던 방법이 뭐였지?", True),
        ("What would you recommend for my resume?", False),
        ("What did Anna recommend to me?", False),
        ("What do you think?", False),
        ("내가 추천했던 책이 뭐였지?", False),
        ("책을 추천해 줘.", False),
    ],
)
def test_questions_for_what_was_replied(question: str, expected: bool) -> None:
    assert asks_for_reply(question) is expected
