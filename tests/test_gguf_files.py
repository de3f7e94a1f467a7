"""GGUF files: converted once, and one sentence for each that cannot be."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tiny_gguf import write_gguf

from chatbot.engine import gguf_files, models
from chatbot.engine.base import SamplingParams
from chatbot.errors import ModelError
from chatbot.settings import Settings


def test_gguf_is_converted_once_and_again_when_it_changes(tmp_path: Path) -> None:
    from chatbot.engine.local import load_engine

    path = write_gguf(tmp_path / "small model.gguf")
    config = models.read_config(str(path), cache_dir=tmp_path).config
    assert (config["num_hidden_layers"], config["num_key_value_heads"]) == (1, 2)
    settings = Settings(model=str(path), cache_dir=tmp_path / "cache", device="cpu")
    said: list[str] = []

    class Report:
        def __call__(self, message: str, progress: float | None = None) -> None:
            said.append(message)

        def offer_tokenizer(self, tokenizer: object) -> None:
            said.append("tokenizer")

    engine = load_engine(settings, Report())
    assert any("converted once" in message for message in said)
    assert said.index("tokenizer") < said.index(said[-1])
    events = list(engine.generate((1, 5, 6), SamplingParams(max_tokens=5)))
    assert events
    assert engine.info.max_window_tokens == 128
    said.clear()
    models.locate(str(path), cache_dir=tmp_path / "cache", progress=lambda m, s: said.append(m))
    assert said == []
    os.utime(path, (1, 1))
    models.locate(str(path), cache_dir=tmp_path / "cache", progress=lambda m, s: said.append(m))
    assert any("converted once" in message for message in said)


def test_conversion_keeps_the_weights(tmp_path: Path) -> None:
    import torch
    from transformers import AutoModelForCausalLM, GgufConfig

    path = write_gguf(tmp_path / "x.gguf")
    folder = tmp_path / "out"
    folder.mkdir()
    gguf_files.convert(path, folder)
    direct = AutoModelForCausalLM.from_pretrained(
        str(tmp_path),
        gguf_file=path.name,
        dtype=torch.bfloat16,
        quantization_config=GgufConfig(dequantize=True),
    )
    ours = AutoModelForCausalLM.from_pretrained(str(folder), dtype=torch.bfloat16)
    ids = torch.tensor([[1, 40, 50, 60]])
    assert torch.equal(direct(ids).logits, ours(ids).logits)


@pytest.mark.parametrize(
    "content, sentence",
    [
        (b"PK\x03\x04 something else", "is not a GGUF file"),
        (b"", "is not a GGUF file"),
        (b"GGUF" + bytes([3, 0, 0, 0]) + b"\xff" * 40, "damaged or incomplete"),
        (b"GGUF", "damaged or incomplete"),
    ],
)
def test_no_gguf_is_a_sentence(tmp_path: Path, content: bytes, sentence: str) -> None:
    path = tmp_path / "x.gguf"
    path.write_bytes(content)
    with pytest.raises(ModelError, match=sentence):
        models.read_config(str(path), cache_dir=tmp_path)


def test_cut_gguf_part_of_a_split_and_unknown_architecture(tmp_path: Path) -> None:
    whole = write_gguf(tmp_path / "whole.gguf").read_bytes()
    cut = tmp_path / "cut.gguf"
    cut.write_bytes(whole[: len(whole) - 3000])
    with pytest.raises(ModelError, match="damaged or incomplete"):
        models.locate(str(cut), cache_dir=tmp_path)
    split = write_gguf(tmp_path / "split.gguf", parts=3)
    with pytest.raises(ModelError, match="one part of 3; merge them"):
        models.locate(str(split), cache_dir=tmp_path)
    other = write_gguf(tmp_path / "other.gguf", architecture="clip")
    with pytest.raises(ModelError, match="cannot be converted"):
        models.locate(str(other), cache_dir=tmp_path)
