"""Model names and folders: what each stands for, and one sentence for each fault."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tiny_gguf import write_gguf

from chatbot.engine import models
from chatbot.engine.cache_folder import ignore_progress
from chatbot.engine.loading import check_architecture
from chatbot.errors import ModelError
from chatbot.settings import Settings


def refuse(*arguments: object, **options: object) -> None:
    raise AssertionError("nothing had to be fetched")


@pytest.mark.parametrize(
    "name, kind_or_sentence",
    [
        ("demo", "demo"),
        ("meta-llama/Meta-Llama-3-8B-Instruct", "hub"),
        ("llama3", "Unknown model 'llama3'; give a hub name"),
        ("", "Unknown model"),
        ("a/b/c", "no model folder or file a/b/c"),
        ("./demo", "no model folder or file ./demo"),
        ("~/models/x", "no model folder or file"),
        ("models/x.gguf", "no model folder or file models/x.gguf"),
        ("a b/c", "Unknown model"),
        ("../../etc/passwd", "no model folder or file"),
    ],
)
def test_kinds_of_names(name: str, kind_or_sentence: str) -> None:
    if " " in kind_or_sentence:
        with pytest.raises(ModelError) as caught:
            models.kind_of(name)
        assert kind_or_sentence in str(caught.value)
    else:
        assert models.kind_of(name) == kind_or_sentence


def folder_with(tmp_path: Path, files: dict[str, str]) -> str:
    folder = tmp_path / "model"
    folder.mkdir()
    for name, text in files.items():
        (folder / name).write_text(text)
    return str(folder)


@pytest.mark.parametrize(
    "files, sentence",
    [
        ({}, "has no config.json; give the model's own folder"),
        ({"x.gguf": ""}, "has no config.json; give the file itself"),
        ({"config.json": "{"}, "cannot be read as JSON"),
        ({"config.json": "[]"}, "is not a model configuration"),
        ({"config.json": "{}"}, "has no weights"),
        ({"config.json": "{}", "model.safetensors.index.json": "{}"}, "damaged"),
        (
            {
                "config.json": "{}",
                "model.safetensors.index.json": json.dumps(
                    {"weight_map": {"a": "one.safetensors", "b": "two.safetensors"}}
                ),
                "one.safetensors": "",
            },
            "lacks 1 of 2 weight files, such as two.safetensors",
        ),
    ],
)
def test_incomplete_folder_is_a_sentence(
    tmp_path: Path, files: dict[str, str], sentence: str
) -> None:
    with pytest.raises(ModelError, match=sentence):
        models.locate(folder_with(tmp_path, files), cache_dir=tmp_path)


def test_damaged_weights_are_a_sentence(tmp_path: Path) -> None:
    from chatbot.engine.loading import load_model
    from chatbot.engine.memory import PlanRequest, make_plan
    from chatbot.engine.model_figures import figures_of

    path = write_gguf(tmp_path / "x.gguf")
    files = models.locate(str(path), cache_dir=tmp_path)
    (files.folder / "model.safetensors").write_bytes(b"\x08" + bytes(7) + b"{broken}")
    config = models.read_config(str(files.folder), cache_dir=tmp_path).config
    plan = make_plan(figures_of(config), 1 << 30, PlanRequest())
    with pytest.raises(ModelError, match="cannot be loaded"):
        load_model(Settings(device="cpu"), files, plan, ignore_progress)


def test_a_window_cut_by_the_bound_on_caches_is_told(tmp_path: Path) -> None:
    from chatbot.engine.loading import load_model
    from chatbot.engine.memory import PlanRequest, make_plan
    from chatbot.engine.model_figures import figures_of

    path = write_gguf(tmp_path / "x.gguf")
    files = models.locate(str(path), cache_dir=tmp_path)
    config = models.read_config(str(files.folder), cache_dir=tmp_path).config
    plan = make_plan(figures_of(config), 1 << 30, PlanRequest(window_tokens=200))
    for tokens, told in ((130, "The window is 128 tokens instead of 200"), (2000, "")):
        said: list[str] = []
        settings = Settings(
            device="cpu", cache_dir=tmp_path, kv_cache_bytes=tokens * plan.kv_bytes_per_token
        )
        loaded = load_model(settings, files, plan, lambda text, share, said=said: said.append(text))
        assert loaded.window_tokens == min(200, tokens // 64 * 64)
        assert told in said[-1] and bool(told) == any("instead of" in text for text in said)


@pytest.mark.parametrize(
    "config, named",
    [
        ({"model_type": "unheard-of"}, "unheard-of"),
        ({}, "unknown"),
        (
            {"model_type": "llama", "architectures": ["LlamaForSequenceClassification"]},
            "LlamaForSequenceClassification",
        ),
        ({"model_type": "clip", "architectures": ["CLIPModel"]}, "CLIPModel"),
    ],
)
def test_unsupported_architecture_is_a_sentence(config: dict[str, Any], named: str) -> None:
    with pytest.raises(ModelError, match=f"architecture {named}, which cannot be used"):
        check_architecture("x", config)


def test_too_large_model_is_refused_before_its_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from huggingface_hub import constants

    from chatbot.engine import loading
    from chatbot.engine.device_memory import Memory

    monkeypatch.setattr(loading, "device_memory", lambda on_cuda: Memory(6 << 30, 4 << 30))
    monkeypatch.setattr(loading, "locate", refuse)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    settings = Settings(
        model="meta-llama/Meta-Llama-3-8B-Instruct", cache_dir=tmp_path, device="cpu"
    )
    with pytest.raises(ModelError, match=r"does not fit: .* 4.00 GiB are free in memory") as caught:
        loading.load_files(settings, ignore_progress)
    assert "Llama-3.2" in str(caught.value)
