"""What is done on a CUDA device, with a device that is made up: no machine of ours has one."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
import torch
from tiny_llama import tiny_model

from chatbot.engine import device_memory
from chatbot.engine.memory import PlanRequest, make_plan
from chatbot.engine.memory_meter import MemoryMeter
from chatbot.engine.model_figures import figures_of
from chatbot.engine.models import ModelFiles
from chatbot.engine.planning import plan_command
from chatbot.engine.read_weights import read_weights
from chatbot.errors import ModelError
from chatbot.settings import Settings

GIB = 1 << 30


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """Bytes of a device: all, free, in tensors, held by the allocator, and at most."""
    found = {"total": 12 * GIB, "free": 6 * GIB, "allocated": 3 * GIB, "reserved": 4 * GIB}
    found["peak"] = 3 * GIB
    # Set before, so that what the code sets is taken back at the end.
    monkeypatch.setenv("PYTORCH_ALLOC_CONF", "")
    monkeypatch.delenv("PYTORCH_ALLOC_CONF")
    monkeypatch.delenv("PYTORCH_CUDA_ALLOC_CONF", raising=False)
    monkeypatch.setattr(device_memory, "_CUDA_DEVICES", (Path(os.devnull),))
    for name, value in {
        "is_available": lambda: True,
        "mem_get_info": lambda: (found["free"], found["total"]),
        "memory_allocated": lambda: found["allocated"],
        "memory_reserved": lambda: found["reserved"],
        "max_memory_allocated": lambda: found["peak"],
        "reset_peak_memory_stats": lambda: found.update(peak=found["allocated"]),
    }.items():
        monkeypatch.setattr(torch.cuda, name, value)
    return found


def test_what_the_allocator_holds_without_using_it_is_free_too(device: dict[str, int]) -> None:
    assert device_memory.cuda_memory() == device_memory.Memory(12 * GIB, 7 * GIB)
    use = device_memory.cuda_use()
    assert use == device_memory.DeviceUse(3 * GIB, 4 * GIB, 3 * GIB, 12 * GIB)
    assert os.environ["PYTORCH_ALLOC_CONF"] == "expandable_segments:True"


def test_the_users_own_allocator_settings_stay(
    device: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTORCH_CUDA_ALLOC_CONF", "max_split_size_mb:64")
    device_memory.cuda_memory()
    assert "PYTORCH_ALLOC_CONF" not in os.environ


def test_a_device_that_fails_is_a_sentence(
    device: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails() -> Any:
        raise RuntimeError("CUDA error: all devices are busy\nCompile with TORCH_USE_CUDA_DSA.")

    monkeypatch.setattr(torch.cuda, "mem_get_info", fails)
    with pytest.raises(ModelError, match=r"all devices are busy.*--device cpu") as caught:
        device_memory.cuda_memory()
    assert "\n" not in str(caught.value)


def test_the_plan_is_for_the_device(device: dict[str, int], tmp_path: Path) -> None:
    report = plan_command(Settings(cache_dir=tmp_path))
    assert (report["device"], report["available_bytes"]) == ("cuda", 7 * GIB)
    assert (report["fits"], report["chosen"]["value_bytes"]) == (True, 2)
    device["free"] = 0
    device["reserved"] = device["allocated"]
    assert not plan_command(Settings(cache_dir=tmp_path))["fits"]


def test_the_peak_of_a_reply_is_the_allocators_own(device: dict[str, int]) -> None:
    device["peak"] = 9 * GIB  # of an earlier reply
    meter = MemoryMeter(2 * GIB, on_cuda=True)
    meter.begin(kv_bytes=0)
    device |= {"allocated": 4 * GIB, "peak": 5 * GIB}
    figures = meter.figures(GIB, 8 * GIB, {})
    assert figures.activations_peak_bytes == GIB  # two more at most, one of them the cache
    assert (figures.device_peak_bytes, figures.device_total_bytes) == (5 * GIB, 12 * GIB)


def test_a_missing_package_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from transformers import AutoModelForCausalLM

    def fails(*_: Any, **__: Any) -> Any:
        raise ImportError("Using bitsandbytes 8-bit quantization requires bitsandbytes>=0.46.1")

    monkeypatch.setattr(AutoModelForCausalLM, "from_pretrained", fails)
    plan = make_plan(figures_of(tiny_model().config.to_dict()), GIB, PlanRequest(weights="int8"))
    files = ModelFiles("tiny", "folder", tmp_path)
    with pytest.raises(ModelError, match=r"bitsandbytes>=0.46.1.*--quantization none"):
        read_weights(files, plan, on_cuda=True)
