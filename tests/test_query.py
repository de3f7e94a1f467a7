"""What is searched for: follow-ups borrow words, questions that stand alone stay as they are."""

from __future__ import annotations

import pytest

from chatbot.messages import Message, Turn
from chatbot.query import leans_on_earlier_turns, search_query


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
