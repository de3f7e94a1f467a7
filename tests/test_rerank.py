"""The second look at the best passages: order, scores, and that nothing is lost."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from retrieval.pipeline import Library
from retrieval.rerank import N_RERANKED, CrossEncoderReranker, rerank
from retrieval.search import Found, Ranked
from retrieval.types import Passage, RetrievalError


class ByPlace:
    """Finds texts with a word of its own relevant; remembers what it was shown."""

    def __init__(self, word: str) -> None:
        self.word = word
        self.seen: list[str] = []

    def relevance(self, query: str, texts: Sequence[str]) -> list[float]:
        self.seen = list(texts)
        return [0.9 if self.word in text else 0.2 for text in texts]


def ranked(number: int, text: str) -> Ranked:
    passage = Passage(number, "d", "a.txt", text, 0, len(text), 5, 1 / (number + 1), context="Head")
    return Ranked(passage)


def test_the_order_is_the_rerankers_and_the_rest_follows() -> None:
    found = Found(tuple(ranked(n, f"text {n}" + " gold" * (n == 5)) for n in range(N_RERANKED + 5)))
    reranker = ByPlace("gold")
    again = rerank(found, "question", reranker)
    assert reranker.seen[0] == "Head\ntext 0" and len(reranker.seen) == N_RERANKED
    assert [item.passage.chunk_id for item in again.ranked][:3] == [5, 0, 1]
    assert [item.passage.chunk_id for item in again.ranked][N_RERANKED:] == list(
        range(N_RERANKED, N_RERANKED + 5)
    )
    scores = [item.score for item in again.ranked]
    assert scores == sorted(scores, reverse=True) and scores[0] == 0.9
    assert rerank(Found(), "question", reranker) == Found()


def test_a_library_uses_it(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("The tower was built in 1887 by the tower company.")
    (tmp_path / "b.txt").write_text("A tower of silver stands there.")
    for reranker, first in ((None, "a.txt"), (ByPlace("silver"), "b.txt")):
        library = Library(
            tmp_path / f"library {first}", embedder=None, count_tokens=len, reranker=reranker
        )
        list(library.ingest_tree([tmp_path / "a.txt", tmp_path / "b.txt"]))
        assert library.search("tower built 1887")[0].document == first
        library.close()


def test_a_model_that_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(RetrievalError, match="cross-encoder"):
        CrossEncoderReranker(str(tmp_path)).relevance("q", ["text"])
