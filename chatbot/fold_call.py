"""One call of the model for a summary, and vectors for the sentences that stand in for it."""

from __future__ import annotations

import threading
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from chatbot.engine.base import Engine, Finished, SamplingParams
from chatbot.errors import EngineError
from chatbot.extractive import Embed
from chatbot.fold_types import ModelReply
from chatbot.language import Language
from chatbot.render import PieceEncoder, PromptParts, render
from retrieval.embed import Embedder
from retrieval.types import ModelUnusableError, RetrievalError

BATCH_SENTENCES = 16
"""Embedded between two looks at whether to stop: a reply that comes in waits for no more."""


@dataclass(frozen=True, slots=True)
class SummaryCall:
    """Asks the engine for a summary, greedily; neither uses nor leaves a cache."""

    engine: Engine
    encoder: PieceEncoder
    repetition_penalty: float
    stop: threading.Event

    def __call__(self, system: str, user: str, max_tokens: int) -> ModelReply:
        """See `CallModel`. Raises what the engine raises."""
        encoder = self.encoder
        parts = PromptParts(encoder.system(system), None, (), (), (), encoder.question(user))
        prompt = render(parts, encoder.format)
        params = SamplingParams(max_tokens=max_tokens, repetition_penalty=self.repetition_penalty)
        for event in self.engine.generate(prompt.token_ids, params, stop=self.stop):
            if isinstance(event, Finished):
                return ModelReply(event.text, event.finish, len(event.token_ids))
        raise EngineError("The model ended without a result.")


def sentence_vectors(
    embedder: Embedder | None, language: Language, stop: threading.Event
) -> Embed | None:
    """The embedder for sentences of this language; None where its vectors would mean nothing."""
    try:
        if embedder is None or (language != "en" and embedder.english_only):
            return None
    except ModelUnusableError:  # what it reads, an unknown model itself has to tell
        return None

    def embed(texts: list[str]) -> npt.NDArray[np.float32]:
        parts: list[npt.NDArray[np.float32]] = []
        for start in range(0, len(texts), BATCH_SENTENCES):
            if stop.is_set():
                raise RetrievalError("The fold gives way to a reply.")
            parts.append(embedder.embed_documents(texts[start : start + BATCH_SENTENCES]))
        return np.concatenate(parts)

    return embed
