"""Language detection by script shares and small words."""

from __future__ import annotations

import pytest

from chatbot.language import detect, detect_all, script_shares

CASES = [
    ("How are you today?", "en"),
    ("안녕하세요, 오늘 날씨가 어때요?", "ko"),
    ("Python에서 pandas DataFrame을 CSV로 저장하려면 어떻게 해요?", "ko"),
    ("My friend 민준 lives in Seoul and works for a bank.", "en"),
    ("今日はいい天気ですね。", "other"),
    ("Привет, как дела?", "other"),
    ("El usuario quiere una reserva para dos personas en el restaurante.", "other"),
    ("Der Benutzer möchte nicht mit dem Zug nach Berlin fahren, und das ist gut.", "other"),
    ("L'utilisateur est dans le train pour Paris avec une amie.", "other"),
    ("def f(x): return x", "en"),
    ("```python\nprint('hello world this is the code')\n```\n이 코드 설명해줘", "ko"),
    ("https://example.com/a/very/long/path 확인해 줘", "ko"),
    ("네", "ko"),
    ("ㅋㅋㅋ 좋아", "ko"),
    ("café and naïve résumé are words that the user likes", "en"),
]


@pytest.mark.parametrize(("text", "language"), CASES)
def test_detect(text: str, language: str) -> None:
    assert detect(text) == language


@pytest.mark.parametrize("text", ["", "  \n", "123 456", "😀😀", "?!", "`code`"])
def test_no_letters_gives_the_default(text: str) -> None:
    assert detect(text) == "en"
    assert detect(text, "ko") == "ko"
    assert script_shares(text).latin == 0.0


def test_several_texts_together() -> None:
    assert detect_all(["OK", "부산 여행 계획을 세워 주세요", "hello"]) == "ko"
    assert detect_all([]) == "en"


def test_shares_add_up() -> None:
    shares = script_shares("abc 한글 мир")
    assert shares.hangul + shares.latin + shares.other == pytest.approx(1.0)
