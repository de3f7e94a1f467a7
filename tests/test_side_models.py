"""Models for vectors and for ranking by hub names: found, fetched, or told in one sentence."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import huggingface_hub
import pytest
from cli import UseScript, inside

from chatbot.budget import context_budget
from chatbot.engine import hub
from chatbot.engine.side_models import RANKING, VECTORS, locate_side_model, wanted
from chatbot.errors import ModelError
from chatbot.fold_call import sentence_vectors
from chatbot.found_passages import found_passages
from chatbot.parts import build_embedder, build_reranker
from chatbot.recall_vectors import RecallVectors
from chatbot.settings import Settings
from retrieval.embed import ScriptedEmbedder, SentenceTransformerEmbedder, Vectors
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


def test_a_question_goes_by_words_without_the_model_and_says_why(
    away: list[str], tmp_path: Path
) -> None:
    """Also where the documents have vectors of the model that was used before."""
    file = tmp_path / "tower.txt"
    file.write_text("The tower of Brill was built in 1887.")
    for earlier, settings in (
        (ScriptedEmbedder(), Settings(embedding_model=NAME)),
        (None, Settings(embedding_model="none", reranker_model=NAME)),
    ):
        folder = tmp_path / f"library {earlier is None}"
        before = Library(folder, embedder=earlier, count_tokens=len)
        ids = [before.ingest(file).document_id or ""]
        before.close()
        models = {"embedder": build_embedder(settings), "reranker": build_reranker(settings)}
        library = Library(folder, count_tokens=len, **models)  # type: ignore[arg-type]
        for question in ("When was the tower built?", "tower는 언제 지었습니까?"):
            found = found_passages(
                library, settings, question, ids, budget=context_budget(999, 99), free_tokens=99
            )
            assert [passage.document for passage in found.passages] == ["tower.txt"]
            (notice,) = found.notices
            assert notice.code == "words_only" and "the hub cannot be reached" in notice.text
        library.close()
    assert len(away) == 2


def test_an_old_turn_is_recalled_by_words_without_the_model(away: list[str]) -> None:
    embedder = build_embedder(Settings(embedding_model="some-org/unknown"))
    assert embedder is not None
    vectors = RecallVectors(embedder)
    assert vectors.query("탑은 언제 지었습니까?") is None
    assert sentence_vectors(embedder, "ko", threading.Event()) is None


def test_vectors_are_made_as_soon_as_there_is_a_model(tmp_path: Path) -> None:
    (tmp_path / "tower.txt").write_text("The tower of Brill was built in 1887.")
    before = Library(tmp_path / "l", embedder=None, count_tokens=len)
    before.ingest(tmp_path / "tower.txt")
    before.close()

    class Away(ScriptedEmbedder):
        is_away = True

        def embed_documents(self, texts: list[str]) -> Vectors:
            if self.is_away:
                raise ModelUnusableError("There is no model.")
            return super().embed_documents(texts)

    library = Library(tmp_path / "l", embedder=Away(), count_tokens=len)
    with pytest.raises(ModelUnusableError):
        library.search("tower")
    Away.is_away = False
    assert library.search("tower") and not library.waiting_for_vectors()
    library.close()


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


@pytest.mark.parametrize("is_found_late", [False, True])
def test_a_command_ends_with_the_sentence_and_blames_no_document(
    is_found_late: bool,
    folder: Path,
    scripted: UseScript,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if is_found_late:  # as of a folder that holds something else
        monkeypatch.setattr(SentenceTransformerEmbedder, "check", lambda self: None)
    scripted(["Yes."])
    asked = inside(
        *("ask", "When was the tower built?", "--documents", folder / "tower.txt"),
        *("--embedding-model", "/nope"),
    )
    assert asked.code == 1 and asked.out == ""
    *_, last = asked.err.splitlines()
    assert last.startswith("chatbot: There is no folder /nope for the embedding model; check")
    assert "tower.txt" not in asked.err and "choose others" not in asked.err


def test_closing_does_not_wait_for_a_model_that_is_being_fetched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("retrieval.pipeline.CLOSE_WAIT_S", 0.1)
    monkeypatch.setattr("chatbot.recall_vectors.CLOSE_WAIT_S", 0.1)
    fetched = threading.Event()

    class Fetching(ScriptedEmbedder):
        def embed_documents(self, texts: list[str]) -> Vectors:
            fetched.wait(60)
            return super().embed_documents(texts)

        def embed_query(self, text: str) -> Vectors:
            fetched.wait(60)
            return super().embed_query(text)

    (tmp_path / "tower.txt").write_text("The tower of Brill was built in 1887.")
    before = Library(tmp_path / "l", embedder=None, count_tokens=len)
    before.ingest(tmp_path / "tower.txt")
    before.close()
    earlier = RecallVectors(ScriptedEmbedder(), tmp_path / "recall.db")
    earlier.embed("chat", ["The tower was built in 1887."])
    earlier.close()
    library = Library(tmp_path / "l", embedder=Fetching(), count_tokens=len)
    vectors = RecallVectors(Fetching(), tmp_path / "recall.db")
    vectors.wake()
    started = time.monotonic()
    library.close()
    vectors.close()
    assert time.monotonic() - started < 30
    fetched.set()
    assert library.wait_until_embedded(60)
