"""Models for vectors and for ranking by hub names: found, fetched, or told in one sentence."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import huggingface_hub
import pytest

from chatbot.engine import hub
from chatbot.engine.side_models import RANKING, VECTORS, locate_side_model, wanted
from chatbot.errors import ModelError
from chatbot.parts import build_embedder, build_reranker
from chatbot.settings import Settings
from retrieval.pipeline import Library
from retrieval.types import ModelUnusableError

NAME = "some-org/multilingual-vectors"


@pytest.fixture
def away(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """A hub that does not answer, and a cache with nothing in it; when it was asked."""
    asked: list[str] = []

    def hub_answers() -> bool:
        asked.append("hub")
        return False

    def snapshot_download(name: str, **options: Any) -> str:
        if options.get("local_files_only"):
            raise huggingface_hub.errors.LocalEntryNotFoundError("no")
        pytest.fail("the client would try again for a minute and more")

    monkeypatch.setattr(hub, "hub_answers", hub_answers)
    monkeypatch.setattr(hub, "is_offline", lambda: False)
    monkeypatch.setattr(huggingface_hub, "snapshot_download", snapshot_download)
    return asked


def test_without_a_hub_it_is_told_at_once_and_not_tried_at_each_text(
    away: list[str], tmp_path: Path
) -> None:
    settings = Settings(embedding_model=NAME, reranker_model=NAME, data_dir=tmp_path)
    embedder, reranker = build_embedder(settings), build_reranker(settings)
    assert embedder is not None and reranker is not None and not away  # not before it is needed
    sentence = (
        f"embedding model {NAME} is not on this machine and the hub cannot be reached; .*none"
    )
    for _ in range(3):
        with pytest.raises(ModelUnusableError, match=sentence):
            embedder.embed_query("When was the tower built?")
    assert len(away) == 1
    with pytest.raises(ModelUnusableError, match=r"reranking model .*set --reranker-model to"):
        reranker.relevance("tower", ["a tower"])


def test_a_document_is_not_blamed_for_the_model(away: list[str], tmp_path: Path) -> None:
    file = tmp_path / "tower.txt"
    file.write_text("The tower was built in 1887.")
    settings = Settings(embedding_model=NAME)
    library = Library(tmp_path / "l", embedder=build_embedder(settings), count_tokens=len)
    report = library.ingest(file)
    library.close()
    assert report.is_of_model and "the hub cannot be reached" in report.message
    assert not Library(tmp_path / "m", embedder=None, count_tokens=len).ingest(file).is_of_model


def test_what_is_here_needs_no_hub(
    monkeypatch: pytest.MonkeyPatch, away: list[str], tmp_path: Path
) -> None:
    for name in ("tokenizer.json", "model.safetensors"):
        (tmp_path / name).write_text("{}")
    monkeypatch.setattr(huggingface_hub, "snapshot_download", lambda *a, **k: str(tmp_path))
    assert locate_side_model(NAME, VECTORS) == tmp_path
    assert locate_side_model(str(tmp_path), VECTORS) == tmp_path
    assert not away
    (tmp_path / "model.safetensors").unlink()  # a download that was cut off
    with pytest.raises(ModelError, match="hub cannot be reached"):
        locate_side_model(NAME, VECTORS)


def test_what_is_missing_is_fetched_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked: list[tuple[str, Any]] = []
    files = ("modules.json", "model.safetensors", "pytorch_model.bin", "onnx/model.onnx", "a.h5",
             "2_Dense/config.json", "2_Dense/pytorch_model.bin", "onnx/config.json")  # fmt: skip

    def snapshot_download(name: str, **options: Any) -> str:
        if options.get("local_files_only"):
            raise huggingface_hub.errors.LocalEntryNotFoundError("no")
        asked.append((name, options["allow_patterns"]))
        return str(tmp_path)

    listing = SimpleNamespace(siblings=[SimpleNamespace(rfilename=name) for name in files])
    api = SimpleNamespace(model_info=lambda name: listing)
    api.model_info.__name__ = "model_info"
    monkeypatch.setattr(huggingface_hub, "HfApi", lambda: api)
    monkeypatch.setattr(huggingface_hub, "snapshot_download", snapshot_download)
    monkeypatch.setattr(hub, "hub_answers", lambda: True)
    monkeypatch.setattr(hub, "is_offline", lambda: False)
    assert locate_side_model("all-MiniLM-L6-v2", VECTORS) == tmp_path
    dense = ["2_Dense/config.json", "2_Dense/pytorch_model.bin"]
    wanted_files = ["modules.json", "model.safetensors", *dense]
    assert asked == [("sentence-transformers/all-MiniLM-L6-v2", wanted_files)]
    assert wanted(["config.json", "pytorch_model.bin"]) == ["config.json", "pytorch_model.bin"]


@pytest.mark.parametrize("name", ["/nope", "a/b/c", "no such folder"])
def test_a_folder_that_is_not_there_is_told_as_one(name: str) -> None:
    with pytest.raises(ModelError, match=r"no folder .* for the reranking model; check the path"):
        locate_side_model(name, RANKING)
