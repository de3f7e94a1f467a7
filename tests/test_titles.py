"""Titles out of questions, and texts folded for search."""

from __future__ import annotations

import unicodedata

import pytest

from chatbot.titles import fold_text, title_from


@pytest.mark.parametrize(
    ("question", "title"),
    [
        ("", ""),
        (" \n\n  Hello   there \n second", "Hello there"),
        ("x" * 60, "x" * 60),
        ("x" * 61, "x" * 59 + "…"),
        ("word " * 20, ("word " * 12).strip() + "…"),
        ("가" * 80, "가" * 59 + "…"),
        ("가나다 라마바 " * 10, ("가나다 라마바 " * 7).strip() + " 가나다…"),
        ("x" * 58 + "👩‍👩‍👧", "x" * 58 + "…"),
        (unicodedata.normalize("NFD", "한글 제목"), "한글 제목"),
    ],
)
def test_title_from_question(question: str, title: str) -> None:
    assert title_from(question) == title
    assert len(title) <= 60


def test_folding_is_stable() -> None:
    assert fold_text(fold_text("İSTANBUL ΌΣΟΣ 가")) == fold_text("İSTANBUL ΌΣΟΣ 가")
