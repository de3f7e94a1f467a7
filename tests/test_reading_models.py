"""Models are read one after another: two at once may leave one without its weights."""

from __future__ import annotations

import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from chatbot.engine.gguf_files import convert
from chatbot.engine.read_weights import read_weights
from chatbot.errors import ModelError
from retrieval.embed import SentenceTransformerEmbedder
from retrieval.rerank import CrossEncoderReranker
from retrieval.slow_imports import READING_MODELS
from retrieval.types import ModelUnusableError


class Reader:
    """In place of a library's reader: sees whether another thread could read now."""

    def __init__(self) -> None:
        self.alone: list[bool] = []

    def __call__(self, *_given: Any, **_named: Any) -> Any:
        got: list[bool] = []
        other = threading.Thread(target=lambda: got.append(READING_MODELS.acquire(blocking=False)))
        other.start()
        other.join()
        self.alone.append(got == [False])
        raise ValueError("read enough")


def test_every_model_is_read_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sentence_transformers
    import transformers

    reader = Reader()
    monkeypatch.setattr(sentence_transformers, "SentenceTransformer", reader)
    monkeypatch.setattr(sentence_transformers, "CrossEncoder", reader)
    monkeypatch.setattr(transformers.AutoModelForCausalLM, "from_pretrained", reader)
    files: Any = SimpleNamespace(folder=tmp_path, name="tiny")
    plan: Any = SimpleNamespace(value_bytes=4, weights="none")
    with pytest.raises(ModelError):
        read_weights(files, plan)
    with pytest.raises(ModelError):
        convert(tmp_path / "tiny.gguf", tmp_path / "out")
    with pytest.raises(ModelUnusableError):
        SentenceTransformerEmbedder(str(tmp_path)).embed_documents(["a text"])
    with pytest.raises(ModelUnusableError):
        CrossEncoderReranker(str(tmp_path)).relevance("a question", ["a text"])
    assert reader.alone == [True] * 4
