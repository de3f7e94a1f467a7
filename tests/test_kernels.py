"""The choice of kernels: measured once, remembered for what it was measured with, and used."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from tiny_llama import tiny_model

from chatbot.engine import kernels
from chatbot.engine.int8_linear import Int8Linear, Int8Matrix, pack_model
from chatbot.engine.kernels import FILE, Kernels, choose_kernels
from chatbot.engine.kv_attention import NAME
from chatbot.engine.kv_cache import new_cache
from chatbot.engine.memory import CACHES
from chatbot.engine.read_weights import attention_names
from chatbot.errors import ModelError

CHOSEN = Kernels(NAME, ("16bit", "int8"), few_rows=4)


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    """Models that were measured; the result is CHOSEN."""
    models: list[Any] = []
    monkeypatch.setattr(kernels, "_measured", lambda model: (models.append(model), CHOSEN)[1])
    yield models


def packed_model() -> Any:
    model = tiny_model()
    pack_model(model, torch.float32)
    return model


def test_a_second_start_measures_nothing_and_uses_the_same(
    tmp_path: Path, measured: list[Any]
) -> None:
    for _ in range(2):
        model = packed_model()
        assert choose_kernels(model, name="tiny", folder=tmp_path) == CHOSEN
        assert model.config._attn_implementation == NAME
        direct = {kind: new_cache(model, kind).layers[0].direct for kind in CACHES}
        assert direct == {"16bit": True, "int8": True, "int4": False}
        assert model.model.layers[0].mlp.down_proj.matrix.few_rows == 4
        assert model.one_token is not None
    assert len(measured) == 1


@pytest.mark.parametrize("change", ["name", "threads", "weights", "processor", "library"])
def test_another_machine_or_model_is_measured_again(
    tmp_path: Path, measured: list[Any], monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    choose_kernels(packed_model(), name="tiny", folder=tmp_path)
    if change == "threads":
        monkeypatch.setattr(torch, "get_num_threads", lambda: 77)
    elif change == "processor":
        monkeypatch.setattr(kernels, "_processor", lambda: "another")
    elif change == "library":
        monkeypatch.setattr(torch, "__version__", "0.0")
    other = tiny_model() if change == "weights" else packed_model()
    choose_kernels(other, name="other" if change == "name" else "tiny", folder=tmp_path)
    assert len(measured) == 2
    assert len(json.loads((tmp_path / FILE).read_text())) == 2


@pytest.mark.parametrize("text", ["", "[]", "{", '{"a": 1}', "null"])
def test_a_damaged_file_is_measured_anew(tmp_path: Path, measured: list[Any], text: str) -> None:
    (tmp_path / FILE).write_text(text)
    choose_kernels(packed_model(), name="tiny", folder=tmp_path)
    choose_kernels(packed_model(), name="tiny", folder=tmp_path)
    assert len(measured) == 1


def test_a_folder_that_cannot_be_written_is_done_without(
    tmp_path: Path, measured: list[Any]
) -> None:
    (tmp_path / "file").write_text("")
    kept = choose_kernels(packed_model(), name="tiny", folder=tmp_path / "file")
    assert kept == CHOSEN


def test_whole_numbers_are_taken_as_far_as_they_are_faster(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def seconds(run: Any, rows: torch.Tensor) -> float:
        return float(len(rows)) if run.__func__ is Int8Matrix.times_few else 10.0

    monkeypatch.setattr(kernels, "_seconds", seconds)
    assert kernels._few_rows(packed_model()) == 8
    assert kernels._few_rows(tiny_model()) == 0


def test_an_attention_that_was_asked_for_is_the_one_in_use(tmp_path: Path) -> None:
    model = packed_model()
    model.set_attn_implementation("eager")
    chosen = choose_kernels(model, name="tiny", folder=tmp_path)
    assert chosen.attention == model.config._attn_implementation == "eager"
    assert model.one_token is None
    assert not any(new_cache(model, kind).layers[0].direct for kind in CACHES)


def test_measuring_a_real_model_gives_something_that_works(tmp_path: Path) -> None:
    model = packed_model()
    ids = torch.tensor([[257, 70, 80]])
    wanted = model(ids).logits
    chosen = choose_kernels(model, name="tiny", folder=tmp_path)
    assert set(chosen.direct_caches) <= set(CACHES)
    torch.testing.assert_close(model(ids).logits, wanted, atol=1e-2, rtol=0)
    assert all(
        m.matrix.few_rows == chosen.few_rows for m in model.modules() if isinstance(m, Int8Linear)
    )


def test_attention_is_flash_if_it_is_there_then_the_librarys_then_eager(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    there = {"flash_attn": False}
    monkeypatch.setattr("importlib.util.find_spec", lambda name: there.get(name) or None)
    assert attention_names("auto", on_cuda=True) == ("sdpa", "eager")
    assert attention_names("eager", on_cuda=False) == ("eager",)
    with pytest.raises(ModelError, match="--attention sdpa"):
        attention_names("flash", on_cuda=True)
    there["flash_attn"] = True
    assert attention_names("auto", on_cuda=True)[0] == "flash_attention_2"
    assert attention_names("auto", on_cuda=False) == ("sdpa", "eager")
    assert attention_names("flash", on_cuda=True) == ("flash_attention_2",)
