"""How much a message needs of old turns: its words, and how well old turns and those in sight
suit it."""

from __future__ import annotations

import pytest

from chatbot.need import Match, asks_back, is_weak, need, question_for_a_fact

NOTHING = Match()
OLD = Match(covered=0.9, covered_in_sight=0.1)
IN_SIGHT = Match(covered=0.9, covered_in_sight=0.9)
SOME_WORDS = Match(covered=0.4, covered_in_sight=0.3)


@pytest.mark.parametrize(
    "message",
    [
        "What did I say about the invoice?",
        "Have I told you where I live?",
        "Remind me, which hotel was it?",
        "What did you recommend for my resume?",
        "Which book did we talk about last time?",
        "내가 어디로 이사한다고 했지?",
        "아까 말한 호텔 이름이 뭐였지?",
        "지난번에 추천해 준 책이 뭐였어?",
        "우리 회의가 언제였더라?",
    ],
)
def test_a_question_for_what_was_said_gets_much_whatever_matches(message: str) -> None:
    assert asks_back(message)
    assert need(message, NOTHING) == "much"


@pytest.mark.parametrize(
    "message",
    [
        "Thanks a lot, that helps!",
        "Good morning, how are you?",
        "ok",
        "고마워요, 도움이 됐어요!",
        "안녕하세요",
        "ㅋㅋㅋ",
    ],
)
def test_small_talk_gets_nothing_though_it_was_said_before(message: str) -> None:
    assert need(message, Match(covered=1.0, cosine=0.9)) == "none"


@pytest.mark.parametrize("message", ["What pet does my sister own?", "내 강아지 이름이 뭐야?"])
def test_a_question_about_the_users_own_affairs_gets_much_if_anything_matches(message: str) -> None:
    assert need(message, SOME_WORDS) == "much"
    assert need(message, Match(cosine=0.4)) == "much"
    assert need(message, IN_SIGHT) == "much"
    assert need(message, NOTHING) == "none"


@pytest.mark.parametrize(
    "message", ["What is the deadline of the first sprint?", "첫 번째 스프린트의 마감은 언제야?"]
)
def test_another_question_gets_some_only_if_old_turns_say_more_than_those_in_sight(
    message: str,
) -> None:
    assert need(message, OLD) == "some"
    assert need(message, Match(cosine=0.6, cosine_in_sight=0.2)) == "some"
    assert need(message, IN_SIGHT) == "none"
    assert need(message, SOME_WORDS) == "none"
    assert need(message, Match(cosine=0.6, cosine_in_sight=0.6)) == "none"


@pytest.mark.parametrize(
    "message",
    [
        "Can you help me to make the page faster?",
        "How do I add a field to the form?",
        "I moved the deadline of the sprint to Friday.",
        "What should I cook tonight?",
        "회의록을 정리하는 방법을 설명해 줘.",
    ],
)
def test_requests_and_statements_need_a_strong_match(message: str) -> None:
    assert question_for_a_fact(message) is None
    assert need(message, Match(covered=0.65, covered_in_sight=0.1)) == "none"
    assert need(message, OLD) == "some"
    assert need(message, IN_SIGHT) == "none"
    assert need(message, Match(cosine=0.7, cosine_in_sight=0.6)) == "none"


def test_a_long_message_brings_its_own_matter() -> None:
    message = " ".join(f"word{n}" for n in range(80)) + ". Is that right?"
    assert need(message, OLD) == "none"
    assert need(f"{message} What did I say about it?", NOTHING) == "much"


def test_next_to_nothing_in_common_is_weak() -> None:
    assert is_weak("Write a haiku about autumn leaves.", Match(covered=0.1, cosine=0.1))
    assert not is_weak("Write a haiku about autumn leaves.", Match(covered=0.1, cosine=0.5))
    assert not is_weak("Write a haiku about autumn leaves.", SOME_WORDS)
    assert not is_weak("Where does my sister live?", NOTHING)


def test_the_one_word_that_was_said_is_enough_if_nothing_in_sight_is_about_it() -> None:
    question = "Which material is the worktop?"
    assert need(question, Match(covered=0.45)) == "some"
    assert need(question, Match(covered=0.45, covered_in_sight=0.3)) == "none"
    assert need(question, Match(covered=0.3)) == "none"


def test_a_question_about_own_affairs_in_other_words_gets_some() -> None:
    question = "When do I get my salary?"
    assert need(question, Match(cosine=0.28)) == "some"
    assert need(question, Match(cosine=0.28, cosine_in_sight=0.25)) == "none"
    assert need(question, Match(cosine=0.2)) == "none"
    assert need("When does the moon rise?", Match(cosine=0.28)) == "none"
