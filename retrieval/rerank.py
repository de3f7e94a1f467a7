"""A second, slower look at the best passages by a cross-encoder. Knows no index.

A cross-encoder reads question and passage together (Nogueira & Cho, arXiv 1901.04085), so it sees
what two vectors made apart cannot. Off unless the user names a model.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from typing import Any, Protocol

from retrieval.model_source import Find, ModelSource
from retrieval.search import Found, Ranked
from retrieval.slow_imports import READING_MODELS, SLOW_IMPORTS
from retrieval.types import passage_body

N_RERANKED = 24
"""Passages that are read again; the others keep their order behind them."""


class Reranker(Protocol):
    """Says how well passages answer a query."""

    def relevance(self, query: str, texts: Sequence[str]) -> list[float]:
        """One number in [0, 1] for each text."""


class CrossEncoderReranker:
    """A sentence-transformers cross-encoder by folder or name, loaded at its first use.

    Thread-safe: one query at a time. Raises ModelUnusableError when the model cannot be had.
    """

    def __init__(self, model: str, *, device: str = "cpu", find: Find | None = None) -> None:
        """`find` gives the folder of the model, when it is needed."""
        self._source = model
        self._files = ModelSource(model, find)
        self._device = device
        self._lock = threading.Lock()
        self._loaded: Any = None

    def relevance(self, query: str, texts: Sequence[str]) -> list[float]:
        """See `Reranker`. Logits become shares by the logistic function."""
        with self._lock:
            model = self._loaded = self._loaded or self._load()
            scores = model.predict([(query, text) for text in texts], show_progress_bar=False)
        values = [float(score) for score in scores]
        if all(0.0 <= value <= 1.0 for value in values):
            return values
        return [1 / (1 + math.exp(-max(-60.0, min(60.0, value)))) for value in values]

    def _load(self) -> Any:
        def load(folder: str) -> Any:
            with SLOW_IMPORTS:
                from sentence_transformers import CrossEncoder
            with READING_MODELS:
                return CrossEncoder(folder, device=self._device)

        otherwise = (
            f"The reranking model {self._source!r} cannot be loaded; give the folder or the "
            "hub name of a sentence-transformers cross-encoder, or none."
        )
        return self._files.loaded(load, otherwise=otherwise)


def rerank(found: Found, query: str, reranker: Reranker) -> Found:
    """The best passages in the order of the reranker, whose number becomes their score.

    The passages behind them are scored below the worst of these, in their old order.
    """
    if not found.ranked:
        return found
    head, tail = found.ranked[:N_RERANKED], found.ranked[N_RERANKED:]
    texts = [passage_body(item.passage.context, item.passage.text) for item in head]
    relevance = reranker.relevance(query, texts)
    order = sorted(range(len(head)), key=lambda at: (-relevance[at], at))
    best = [head[at].scored(relevance[at]) for at in order]
    floor = best[-1].score
    return Found((*best, *_below(tail, floor)), found.query, found.dense)


def _below(tail: Sequence[Ranked], floor: float) -> list[Ranked]:
    top = max((item.score for item in tail), default=0.0)
    return [item.scored(floor * item.score / top if top else 0.0) for item in tail]
