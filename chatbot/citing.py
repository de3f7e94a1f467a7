"""Which passages support a reply: worked out by program, not asked of the model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from chatbot.messages import Turn
from retrieval.align import align, best_sentence
from retrieval.context import LabelledPassage
from retrieval.types import Citation

PagesOf = Callable[[str, int, int], tuple[int | None, int | None]]
"""(document id, start, end) -> first and last page of these characters."""


def cite(turn: Turn, passages: Sequence[LabelledPassage], pages_of: PagesOf) -> Turn:
    """The turn with its sources, unsupported statements and the best-matching sentence.

    A citation names the page on which its own words stand, not all the pages of its passage.
    """
    citations, unsupported = align(turn.reply, passages, turn.question)
    best = best_sentence(turn.question, passages)
    return replace(
        turn,
        citations=tuple(_on_its_page(citation, pages_of) for citation in citations),
        unsupported=unsupported,
        best_sentence=_on_its_page(best, pages_of) if best else None,
    )


def _on_its_page(citation: Citation, pages_of: PagesOf) -> Citation:
    page, page_end = pages_of(citation.document_id, citation.start, citation.end)
    return replace(citation, page=page, page_end=page_end)
