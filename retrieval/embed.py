"""Texts to vectors by an embedding model. Knows no index."""

from __future__ import annotations

import hashlib
import itertools
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from retrieval.model_source import Find, ModelSource, identity
from retrieval.slow_imports import READING_MODELS, SLOW_IMPORTS
from retrieval.types import RetrievalError
from retrieval.words import lexical_terms

Vectors = NDArray[np.float32]

BATCH_TEXTS = 32
CPU_BATCH_TEXTS = 8
"""Documents are embedded in such steps: a question waits for one of them at most, some 0.2 s."""
YIELD_S = 0.002
E5_PROMPTS = {"query": "query: ", "document": "passage: "}
_ENGLISH_ONLY = ("all-minilm-l", "all_minilm_l", "all-mpnet-base", "all-distilroberta")
_MULTILINGUAL = ("multilingual", "bge-m3", "paraphrase-xlm", "labse")
_HANGUL_PROBE = "직원은해마다휴가를쓸수있습니다"


class Embedder(Protocol):
    """What the index needs of an embedding model. Vectors are normalised rows of float32."""

    @property
    def name(self) -> str:
        """Tells vectors of different models apart; stored with them."""

    @property
    def dimensions(self) -> int: ...

    @property
    def english_only(self) -> bool:
        """Whether the vectors of Hangul text mean nothing."""

    @property
    def max_tokens(self) -> int:
        """What the model reads of a text, in its own tokens; the rest would be lost."""

    def count_tokens(self, text: str) -> int:
        """Tokens of a text in the model's own vocabulary, without special tokens."""

    def embed_documents(self, texts: list[str]) -> Vectors:
        """Shape (texts, dimensions)."""

    def embed_query(self, text: str) -> Vectors:
        """Shape (dimensions,)."""


class SentenceTransformerEmbedder:
    """A sentence-transformers model by folder or name, loaded at its first use.

    Thread-safe: one batch is embedded at a time, and questions come before documents. Raises
    ModelUnusableError when the model cannot be had.
    """

    def __init__(
        self,
        model: str | Path,
        *,
        name: str | None = None,
        device: str = "cpu",
        english_only: bool | None = None,
        find: Find | None = None,
    ) -> None:
        """`find` gives the folder of a `model` that is known by its name, when it is needed."""
        self._source = str(model)
        self._files = ModelSource(self._source, find)
        self.name = name or identity(self._source)
        self._english_only = english_only
        self._e5 = "e5" in Path(self._source).name.lower()
        self._device = device
        self._lock = threading.Lock()
        self._counting = threading.Lock()
        self._asking = 0
        """Questions that wait to be embedded; documents let them pass."""
        self._loaded: Any = None

    @property
    def english_only(self) -> bool:
        """Known by name for common models, so that these need not be loaded to ask; else told by
        the vocabulary: it cuts Hangul syllables into letters, or does not know them."""
        if self._english_only is None:
            source = self._source.lower()
            if any(part in source for part in _ENGLISH_ONLY):
                self._english_only = True
            elif any(part in source for part in _MULTILINGUAL):
                self._english_only = False
            else:
                self._english_only = self.count_tokens(_HANGUL_PROBE) > len(_HANGUL_PROBE)
        return self._english_only

    @property
    def is_loading(self) -> bool:
        """Whether somebody waits for the model just now, which may be fetched for minutes."""
        return self._loaded is None and self._lock.locked()

    def check(self) -> None:
        """Raise ModelUnusableError now if the model is not here and cannot be fetched."""
        with self._lock:
            self._files.folder()

    @property
    def dimensions(self) -> int:
        return int(self._model().get_embedding_dimension())

    @property
    def max_tokens(self) -> int:
        """The model's limit less its two special tokens and the prompt of E5 models."""
        limit = self._model().max_seq_length or 512
        return max(8, int(limit) - 2 - (4 if self._e5 else 0))

    def count_tokens(self, text: str) -> int:
        self._model()
        return len(self._tokenizer.encode(text, add_special_tokens=False).ids)

    def embed_documents(self, texts: list[str]) -> Vectors:
        if not texts:
            return np.zeros((0, self.dimensions), dtype=np.float32)
        model = self._model()
        # Texts of one length together, since a batch is filled up to its longest.
        order = sorted(range(len(texts)), key=lambda i: len(texts[i]))
        size = CPU_BATCH_TEXTS if self._device == "cpu" else len(texts)
        vectors = np.zeros((len(texts), self.dimensions), dtype=np.float32)
        for start in range(0, len(order), size):
            some = order[start : start + size]
            while self._asking:  # a person waits for these
                time.sleep(YIELD_S)
            vectors[some] = self._embed(model.encode_document, [texts[i] for i in some])
        return vectors

    def embed_query(self, text: str) -> Vectors:
        model = self._model()
        with self._counting:
            self._asking += 1
        try:
            return self._embed(model.encode_query, [text])[0]
        finally:
            with self._counting:
                self._asking -= 1

    def _embed(self, encode: Callable[..., Any], texts: list[str]) -> Vectors:
        with self._lock:
            vectors = encode(
                texts,
                batch_size=BATCH_TEXTS,
                normalize_embeddings=True,
                convert_to_numpy=True,
                show_progress_bar=False,
            )
        return np.asarray(vectors, dtype=np.float32)

    def _model(self) -> Any:
        if self._loaded is None:
            with self._lock:
                if self._loaded is None:
                    loaded = self._load()
                    # A copy of its own: the model's one cuts texts and is not for two threads.
                    self._tokenizer = Tokenizer.from_str(
                        loaded.tokenizer.backend_tokenizer.to_str()
                    )
                    self._tokenizer.no_truncation()
                    self._tokenizer.no_padding()
                    self._loaded = loaded
        return self._loaded

    def _load(self) -> Any:
        prompts = {"prompts": E5_PROMPTS} if self._e5 else {}

        def load(folder: str) -> Any:
            # Takes seconds and a gigabyte of libraries, so only when the first text comes.
            with SLOW_IMPORTS:
                from sentence_transformers import SentenceTransformer
            with READING_MODELS:
                return SentenceTransformer(folder, device=self._device, **prompts)

        otherwise = (
            f"The embedding model {self._source!r} cannot be loaded; give the folder or the "
            "hub name of a sentence-transformers model."
        )
        return self._files.loaded(load, otherwise=otherwise)


class ScriptedEmbedder:
    """A bag of hashed words, for tests: the same everywhere, of any width, slow or failing on
    demand. Texts that share words are near each other."""

    def __init__(
        self,
        *,
        name: str = "scripted",
        dimensions: int = 64,
        english_only: bool = False,
        max_tokens: int = 256,
        delay_s: float = 0.0,
        fail_at: int | None = None,
    ) -> None:
        self.name = name
        self.dimensions = dimensions
        self.english_only = english_only
        self.max_tokens = max_tokens
        self.embedded: list[str] = []
        """Every document text that was embedded, in order."""
        self._delay_s = delay_s
        self._fail_at = fail_at
        self._counter = itertools.count()

    def count_tokens(self, text: str) -> int:
        return len(lexical_terms(text))

    def embed_documents(self, texts: list[str]) -> Vectors:
        for text in texts:
            if next(self._counter) == self._fail_at:
                message = "The scripted embedder was told to fail here."
                raise RetrievalError(message)
            time.sleep(self._delay_s)
            self.embedded.append(text)
        return self._rows(texts)

    def embed_query(self, text: str) -> Vectors:
        return self._rows([text])[0]

    def _rows(self, texts: Sequence[str]) -> Vectors:
        rows = np.zeros((len(texts), self.dimensions), dtype=np.float32)
        for row, text in zip(rows, texts, strict=True):
            for term in lexical_terms(text):
                digest = hashlib.blake2b(f"{self.name} {term}".encode(), digest_size=8).digest()
                row[int.from_bytes(digest) % self.dimensions] += 1.0
        norms = np.linalg.norm(rows, axis=1, keepdims=True)
        return np.asarray(rows / np.maximum(norms, 1e-12), dtype=np.float32)
