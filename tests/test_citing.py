"""Citations name the page of their own words, not all the pages of their passage."""

from __future__ import annotations

from chatbot.citing import cite
from chatbot.messages import Message, Turn
from retrieval.context import LabelledPassage
from retrieval.types import Passage

TEXT = "The kettle holds two litres. It is made of steel. The warranty lasts 24 months."


def pages_of(document_id: str, start: int, end: int) -> tuple[int, int]:
    """Every 30 characters are a page."""
    return start // 30 + 1, (end - 1) // 30 + 1


def test_the_page_of_the_quoted_words() -> None:
    passage = Passage(1, "d", "kettle.pdf", TEXT, 0, len(TEXT), 20, 1.0, page=1, page_end=3)
    turn = Turn(
        "t",
        (Message("u", "user", "How long is the warranty?"),),
        (Message("a", "assistant", "It holds two litres. The warranty lasts 24 months."),),
    )
    cited = cite(turn, [LabelledPassage("1", passage)], pages_of)
    assert [(c.page, c.page_end) for c in cited.citations] == [(1, 1), (2, 3)]
    assert cited.best_sentence is not None
    assert cited.best_sentence.page == 2
