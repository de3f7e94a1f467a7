"""Sheets, slides and pages are called what they are."""

from __future__ import annotations

import pytest

from chatbot.ui.i18n import Language
from chatbot.ui.place_words import page_count_text, pages_text


@pytest.mark.parametrize(
    ("language", "document", "one", "several", "count"),
    [
        ("en", "a.pdf", "page 2", "pages 2 to 3", "4 pages"),
        ("en", "Budget.XLSX", "sheet 2", "sheets 2 to 3", "4 sheets"),
        ("ko", "예산.ods", "시트 2", "시트 2~3", "시트 4개"),
        ("ko", "발표.pptx", "슬라이드 2", "슬라이드 2~3", "슬라이드 4장"),
        ("ko", "글.pdf", "2쪽", "2~3쪽", "4쪽"),
    ],
)
def test_places(language: Language, document: str, one: str, several: str, count: str) -> None:
    assert pages_text(language, document, 2, None) == pages_text(language, document, 2, 2) == one
    assert pages_text(language, document, 2, 3) == several
    assert page_count_text(language, document, 4) == count
