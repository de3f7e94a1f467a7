"""A message larger than the prompt keeps its first and last words."""

from __future__ import annotations

import pytest

from chatbot.long_question import shorten_question


def words(text: str) -> int:
    return len(text.split())


def mark(left_out: int) -> str:
    return f"\n[{left_out} left out]\n"


def test_head_and_tail_stay_word_for_word() -> None:
    question = "Count the plums.\n" + "filler words here " * 600 + "\nThe code word is PLUM-7."
    short = shorten_question(question, 100, mark=mark, count=words)
    assert short.text.startswith("Count the plums.\n")
    assert short.text.endswith("The code word is PLUM-7.")
    assert words(short.text) <= 100
    head, _, tail = short.text.partition(mark(short.left_out_tokens))
    assert question.startswith(head) and question.endswith(tail)
    assert short.left_out_tokens == words(question) - words(head) - words(tail)


@pytest.mark.parametrize("question", ["가" * 4000, "x" * 10_000, "😀" * 3000])
def test_text_without_words_is_cut_too(question: str) -> None:
    short = shorten_question(question, 200, mark=mark, count=len)
    assert len(short.text) <= 210
    assert short.text.startswith(question[:50])
