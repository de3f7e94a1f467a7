"""Which follow-ups lean on the turns before them, in both languages, and which lean on nothing."""

from __future__ import annotations

import pytest

from chatbot.messages import Message, Turn
from chatbot.query import is_merely_short, leans_on_earlier_turns, search_query
from chatbot.query_parts import parted


def turn(question: str, reply: str) -> Turn:
    return Turn("t", (Message("u", "user", question),), (Message("a", "assistant", reply),))


@pytest.mark.parametrize(
    ("question", "asked", "replied", "borrowed"),
    [
        ("그분 생일은 언제죠?", "계약서에 서명한 사람은 누구예요?", "김서연 씨입니다.",
         "계약서에 김서연"),
        ("파란 것도요?", "빨간 주전자는 보증이 있나요?", "네, 2년입니다.", "주전자는 보증이"),
        ("다시 한번 말해 줘", "오다 브란트는 언제 은퇴했나요?", "1998년입니다.", "브란트는"),
        ("Say that again in Korean.", "When did Oda Brandt retire?", "In 1998.", "Brandt retire"),
        ("Please repeat it in French.", "When did Oda Brandt retire?", "In 1998.", "Brandt retire"),
        ("The blue one too?", "Does the red kettle have a warranty?", "Two years.", "kettle"),
    ],
)  # fmt: skip
def test_follow_ups_borrow_what_they_lean_on(
    question: str, asked: str, replied: str, borrowed: str
) -> None:
    query = search_query(question, [turn(asked, replied)])
    assert query.startswith(question)
    assert all(word in query for word in borrowed.split())


LEANING = (
    "그분은 결혼했어요?", "걔 전화번호 뭐야?", "그녀는 언제 태어났어?", "그날 날씨는 어땠어요?",
    "작은 건 얼마예요?", "큰 걸로 하면 얼마예요?", "빨간 거는?", "처음 거는 얼마였죠?",
    "이 중에서 제일 싼 건 뭐야?", "후자는 얼마죠?", "나머지는 어떻게 해요?", "둘 중에 뭐가 나아요?",
    "부산은요?", "학생 할인은요?", "당일 취소도 되나요?", "생일은 언제죠?", "몇 시에 시작해요?",
    "더 자세히 설명해 주세요", "한 번 더 말해 주실 수 있나요?", "영어로 번역해 줘", "예를 들어 줘",
    "못 들었어요, 다시요", "위 내용을 요약해 줘", "확실해요?", "좋아요, 계속해 주세요", "네",
    "고마워요. 그럼 부산은요?", "감사합니다! 왜요?", "고마워. 그건 얼마야?",
    "Please repeat your last answer in Korean.", "Elaborate.", "Translate into French.", "ok",
    "Summarize in two sentences.", "Is the second option cheaper?", "And hers?", "Thank you",
    "Thanks. Why?", "Thanks! And the price?", "Thanks. How long is the warranty?",
    "Thanks, and in Ghent?", "Great, thank you. How heavy is it?", "Next: how heavy is it?",
)  # fmt: skip
ALONE = (
    "고마워요. 페루의 수도는 어디예요?", "네, 감사합니다. 벨기에의 인구는 얼마인가요?",
    "감사합니다. 다음 질문: 광합성은 뭐예요?", "고마워 😊 광합성이 뭐야?",
    "감사합니다. 그런데 이순신은 언제 태어났어요?", "설명 감사합니다. 페루의 수도는요?",
    "알겠어요 고마워. 이제 비자 신청은 어떻게 해?", "화제를 바꿔서, 서울의 인구는 얼마예요?",
    "다른 질문인데요, 부산에서 서울까지 기차로 얼마나 걸려요?",
    "도움이 됐어요. 파이썬에서 파일을 읽는 방법은?", "로또 당첨 번호는 어떻게 뽑나요?",
    "블로그 주소를 바꾸는 방법을 알려 주세요", "바위의 종류에는 무엇이 있나요?",
    "Ok thanks. Next: what is the capital of Peru?", "Thanks! How do volcanoes work?",
    "Great, thank you so much. What is photosynthesis?", "New topic: how do volcanoes work?",
    "Another question: when was the University of Lisbon founded?",
    "Thanks for the help. Where can I buy snow chains in Ghent?",
    "Ok. New question. Who invented the telephone?", "Thanks. And what is the capital of Peru?",
    "That helps, thanks. Name a river in Chile.", "No thanks. What is the capital of Peru?",
    "Ok. On a different note, how is cheese made?", "Moving on. What is the speed of light?",
)  # fmt: skip


@pytest.mark.parametrize("question", LEANING)
def test_what_cannot_be_understood_alone_leans(question: str) -> None:
    assert leans_on_earlier_turns(question)


@pytest.mark.parametrize("question", ALONE)
def test_a_new_subject_leans_on_nothing(question: str) -> None:
    assert not leans_on_earlier_turns(question)
    assert search_query(question, [turn("Which oil for the K-200?", "5W-30.")]) == question


def test_thanks_and_announcements_are_parted_from_the_question() -> None:
    assert parted("Ok, thanks! Why?") == ("thanks", "Why?")
    assert parted("네, 고마워요 ㅎㅎ 다음 질문: 왜요?") == ("news", "왜요?")
    for whole in ("Thanks", "고마워요!", "", "Next.js routing", "Thanks to whom?", "네가 누구야?"):
        assert parted(whole) == ("", whole)


def test_a_wish_to_hear_something_again_is_no_short_name() -> None:
    assert is_merely_short("kettle warranty")
    assert not is_merely_short("다시 한번 말해 줘")
    assert not is_merely_short("Once more, please")
