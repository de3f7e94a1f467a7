"""Extractive summaries: word for word, within the cap, in order, facts first."""

from __future__ import annotations

import random
import time

import numpy as np
import numpy.typing as npt

from chatbot.extractive import extractive_summary
from chatbot.messages import Message, Turn
from retrieval.sentences import sentences

TURNS_TEXT = [
    ("Hi there. My name is Ana and I live in Oslo.", "Hello! Nice to meet you. How can I help?"),
    ("I want to paint my flat. The budget is 900 euros.", "Paint costs about 50 euros a room."),
    ("Hm, okay.", "Tell me the colours that you like. Many people choose white."),
    ("I prefer green. We decided to start on 14 May.", "Green is calming. May is a good month."),
]
KOREAN_TEXT = [
    ("안녕하세요. 제 이름은 김서연이고 부산에 살아요.", "반갑습니다. 무엇을 도와드릴까요?"),
    ("집을 칠하려고 해요. 예산은 80만 원이에요.", "방 하나에 5만 원 정도 듭니다."),
    ("초록색이 좋아요. 5월 14일에 시작하기로 했어요.", "초록색은 편안한 느낌을 줍니다."),
]


def count(text: str) -> int:
    return len(text.split())


def turns(texts: list[tuple[str, str]] = TURNS_TEXT) -> list[Turn]:
    return [
        Turn(str(n), (Message(f"u{n}", "user", u),), (Message(f"a{n}", "assistant", a),))
        for n, (u, a) in enumerate(texts)
    ]


def summary(cap: int, **values: object) -> str:
    return extractive_summary(turns(), cap_tokens=cap, count_tokens=count, **values)  # type: ignore[arg-type]


def test_within_every_cap_and_word_for_word() -> None:
    everything = " ".join(u + " " + a for u, a in TURNS_TEXT)
    for cap in range(60):
        text = summary(cap)
        assert count(text) <= cap
        assert not text or text[-1] in ".!?…"
        for line in text.splitlines():
            mark, body = line.split(") ", 1)
            assert mark in ("(user", "(assistant")
            assert all(s.removesuffix(" …") in everything for s in sentences(body)), body


def test_specifics_of_the_user_come_first_and_in_order() -> None:
    text = summary(26)
    places = [text.find(word) for word in ("Ana", "900", "14 May")]
    assert -1 not in places
    assert places == sorted(places)
    assert "okay" not in text


def test_korean() -> None:
    text = extractive_summary(turns(KOREAN_TEXT), cap_tokens=20, count_tokens=count, language="ko")
    assert "김서연" in text and "80만 원" in text and "5월 14일" in text
    assert text.startswith("(사용자) ")
    assert count(text) <= 20


def test_earlier_summary_stays_word_for_word_while_it_fits() -> None:
    before = "Ana's brother Per is a nurse. He is 31."
    text = summary(40, previous=before)
    assert text.startswith(before + "\n(user) ")
    assert extractive_summary([], cap_tokens=40, count_tokens=count, previous=before) == before


def test_earlier_extractive_summary_keeps_its_speakers_and_no_sentence_twice() -> None:
    first = summary(26)
    second = summary(60, previous=first)
    assert second.startswith(first)
    assert second.count("My name is Ana") == 1


def test_a_long_earlier_summary_keeps_its_specifics() -> None:
    talk = "They spoke of this and that for a while. " * 1
    before = talk + "Per is 31 and lives in Bergen. " + "It was a pleasant talk about things. " * 5
    text = summary(30, previous=before)
    assert "Per is 31 and lives in Bergen." in text
    assert count(text) <= 30


def test_facts_persist_over_many_folds() -> None:
    text = ""
    planted = [("The code of the safe is 7731.", "Fine."), ("My aunt Olga lives in Kyiv.", "Good.")]
    chat = planted + [(f"I walked along road {n} today.", "Walking is nice.") for n in range(30)]
    for pair in chat:
        text = extractive_summary(turns([pair]), cap_tokens=60, count_tokens=count, previous=text)
        assert count(text) <= 60
    assert "7731" in text and "Olga" in text


def test_long_sentences_are_shortened_with_a_mark_only() -> None:
    long = "The code is PLUM-7, " + "and so on and so forth, " * 40 + "the end"
    text = extractive_summary(turns([(long, "ok fine")]), cap_tokens=30, count_tokens=count)
    assert "PLUM-7" in text and "…" in text
    assert count(text) <= 30
    unspaced = extractive_summary(
        turns([("가" * 3000, "네")]), cap_tokens=50, count_tokens=len, language="ko"
    )
    assert 0 < len(unspaced) <= 50


def test_a_beginning_without_content_is_no_summary() -> None:
    """A cap of a few tokens leaves nothing of a long sentence that says anything."""
    korean = (
        "저는 매주 수요일 저녁에 동네 도서관에서 열리는 독서 모임에 이웃들과 함께 나가고 있어요."
    )
    english = "I've been going to the evening reading circle of our town library with neighbours."
    for text, language in ((korean, "ko"), (english, "en")):
        turn = [Turn("t", (Message("u", "user", text),), (Message("a", "assistant", "네."),))]
        for cap in (2, 3, 4):
            made = extractive_summary(turn, cap_tokens=cap, count_tokens=count, language=language)
            assert made == "", (cap, made)
        assert "…" in extractive_summary(turn, cap_tokens=9, count_tokens=count, language=language)


def test_nothing_gives_nothing() -> None:
    assert extractive_summary([], cap_tokens=50, count_tokens=count) == ""
    assert extractive_summary(turns([(" ", "!!!")]), cap_tokens=50, count_tokens=count) == ""
    assert summary(0) == ""
    code = turns([("```\nx = 1\ny = 2\n```", "```python\nprint(12345)")])
    assert extractive_summary(code, cap_tokens=50, count_tokens=count) == ""


def test_names_of_speakers_are_kept_and_harmless() -> None:
    named = [Turn("1", (Message("m", "user", "The budget is 900 euros.", name="Ana (PM)\n"),))]
    text = extractive_summary(named, cap_tokens=50, count_tokens=count)
    assert text == "(Ana PM) The budget is 900 euros."


def test_embeddings_are_used() -> None:
    seen: list[list[str]] = []

    def embed(texts: list[str]) -> npt.NDArray[np.float32]:
        seen.append(texts)
        rng = np.random.default_rng(1)
        vectors = rng.normal(size=(len(texts), 8)).astype(np.float32)
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)

    assert summary(30, embed=embed)
    assert seen and "I prefer green." in seen[0]


def test_same_input_same_summary_and_fast_enough() -> None:
    rng = random.Random(3)
    words = [f"word{n}" for n in range(400)]
    many = [(" ".join(rng.choices(words, k=12)) + ".", "Fine then, go on.") for _ in range(1500)]
    begin = time.process_time()
    one = extractive_summary(turns(many), cap_tokens=200, count_tokens=count)
    assert time.process_time() - begin < 5
    assert count(one) <= 200
    some = [extractive_summary(turns(many[:300]), cap_tokens=200, count_tokens=count) for _ in "12"]
    assert some[0] == some[1]
