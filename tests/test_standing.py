"""Rules and preferences that hold for later turns are told from ordinary sentences."""

from __future__ import annotations

import pytest

from chatbot.messages import Message, Turn
from chatbot.recall import RecallIndex
from chatbot.standing import standing


@pytest.mark.parametrize(
    "text",
    [
        "Always give version numbers when I ask about libraries.",
        "Please never use tables.",
        "From now on, answer in two sentences.",
        "Thanks. When I ask about dates, write the weekday too.",
        "앞으로 답은 짧게 해 줘.",
        "항상 존댓말로 답해 주세요.",
        "날짜를 물어볼 때는 요일도 알려 줘.",
    ],
)
def test_instructions(text: str) -> None:
    assert standing(text) == "instruction"


@pytest.mark.parametrize(
    "text",
    [
        "I prefer working in the morning, before nine.",
        "I'd rather take the train.",
        "I really don't like to fly.",
        "저는 아침에 일하는 것을 선호합니다.",
        "나는 커피보다 차가 더 좋아.",
    ],
)
def test_preferences(text: str) -> None:
    assert standing(text) == "preference"


@pytest.mark.parametrize(
    "text",
    [
        "What is the capital of Portugal?",
        "The shop is always closed on Mondays, isn't it?",
        "오늘 날씨가 어때?",
        "리스본은 포르투갈의 수도야.",
    ],
)
def test_ordinary_sentences(text: str) -> None:
    assert standing(text) is None


def test_an_instruction_comes_back_for_a_question_that_shares_no_word_with_it() -> None:
    def turn(number: int, question: str) -> Turn:
        user = Message(f"u{number}", "user", question)
        return Turn(f"t{number}", (user,), (Message(f"a{number}", "assistant", "Noted."),))

    index = RecallIndex(lambda text: len(text.split()))
    turns = [turn(0, "Always answer with a rhyme.")]
    turns += [turn(n, f"The train number {n} leaves at noon.") for n in range(1, 30)]
    index.sync(turns)
    assert "u0" in [
        e.message.id for e in index.search("When does the train leave?", limit_tokens=80)
    ]
    index.sync(turns[1:])
    assert "u0" not in [
        e.message.id for e in index.search("When does the train leave?", limit_tokens=80)
    ]
