"""The arithmetic of memory: against known figures, at its edges, and the sentences it leads to."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import ByteSize

from chatbot.engine import device_memory, planning
from chatbot.engine.device_memory import parse_bytes
from chatbot.engine.known_models import KNOWN_CONFIGS
from chatbot.engine.memory import (
    GIB,
    PlanRequest,
    kv_bytes_per_token,
    make_plan,
    weights_bytes,
    working_bytes,
)
from chatbot.engine.model_figures import figures_of
from chatbot.engine.plan_text import format_plan
from chatbot.engine.planning import plan_command
from chatbot.errors import InputError, ModelError, SettingsError
from chatbot.settings import Settings

LLAMA3_8B = "meta-llama/Meta-Llama-3-8B-Instruct"
EIGHT = figures_of(KNOWN_CONFIGS[LLAMA3_8B])


@pytest.fixture(autouse=True)
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)


@pytest.mark.parametrize(
    "name, parameters",
    [
        ("demo", 134_515_008),
        (LLAMA3_8B, 8_030_261_248),
        ("meta-llama/Llama-3.2-1B-Instruct", 1_235_814_400),
        ("meta-llama/Llama-3.2-3B-Instruct", 3_212_749_824),
        ("meta-llama/Llama-3.1-70B-Instruct", 70_553_706_496),
        # Published: 27,648 and 129,024 more, the biases of queries, keys and values.
        ("Qwen/Qwen2.5-0.5B-Instruct", 494_005_120),
        ("Qwen/Qwen2.5-7B-Instruct", 7_615_487_488),
    ],
)
def test_parameters_are_the_published_ones(name: str, parameters: int) -> None:
    assert figures_of(KNOWN_CONFIGS[name]).parameters == parameters


def test_bytes_of_llama_3_8b() -> None:
    assert kv_bytes_per_token(EIGHT, "16bit") == 128 * 1024
    assert kv_bytes_per_token(EIGHT, "int8") == 65 * 1024
    assert kv_bytes_per_token(EIGHT, "int4") == 37 * 1024
    assert 8.4 * GIB < weights_bytes(EIGHT, "int8") < 8.6 * GIB
    assert weights_bytes(EIGHT, "none") == 2 * EIGHT.parameters
    assert 5.3 * GIB < weights_bytes(EIGHT, "int4") < 5.8 * GIB
    # A piece with all its rows of logits would take gigabytes.
    assert working_bytes(EIGHT, 512, 8192) < 0.5 * GIB


def test_window_is_the_largest_that_fits_to_the_token() -> None:
    request = PlanRequest(weights="int8", on_cuda=True)
    for available in range(9 * GIB, 12 * GIB, GIB // 3):
        plan = make_plan(EIGHT, available, request)
        if not plan.largest_window_tokens:
            assert not plan.fits
            continue
        n = plan.largest_window_tokens
        at = {
            k: make_plan(EIGHT, available, PlanRequest("int8", "16bit", k, 512, True))
            for k in (n, n + 1)
        }
        assert at[n].fits
        assert n == EIGHT.window_tokens or not at[n + 1].fits
        assert plan.window_tokens == min(n, 8192)


def test_plan_adds_up_and_missing_is_exact() -> None:
    plan = make_plan(EIGHT, 8 * GIB, PlanRequest(weights="int8", window_tokens=4096, on_cuda=True))
    parts = plan.weights_bytes + plan.kv_bytes + plan.working_bytes + plan.reserve_bytes
    assert plan.total_bytes == parts
    assert plan.missing_bytes == parts - 8 * GIB > 0
    assert make_plan(EIGHT, parts, PlanRequest("int8", "16bit", 4096, 512, True)).missing_bytes == 0
    assert (
        make_plan(EIGHT, parts - 1, PlanRequest("int8", "16bit", 4096, 512, True)).missing_bytes
        == 1
    )


def test_largest_window_never_shrinks_with_more_memory() -> None:
    last = 0
    for available in range(0, 20 * GIB, GIB // 4):
        now = make_plan(EIGHT, available, PlanRequest(weights="int4")).largest_window_tokens
        assert now >= last
        last = now
    assert last == 8192


@pytest.mark.parametrize(
    "config",
    [
        {"text_config": dict(KNOWN_CONFIGS["demo"])},
        {**KNOWN_CONFIGS["demo"], "head_dim": 64, "architectures": ["LlamaForCausalLM"]},
    ],
)
def test_other_spellings_of_a_configuration(config: dict[str, Any]) -> None:
    assert figures_of(config) == figures_of(KNOWN_CONFIGS["demo"])


def test_experts_count() -> None:
    dense = figures_of(KNOWN_CONFIGS[LLAMA3_8B])
    mixed = figures_of({**KNOWN_CONFIGS[LLAMA3_8B], "num_local_experts": 8})
    grown = mixed.linear_parameters - dense.linear_parameters
    assert grown == 7 * 3 * 4096 * 14_336 * 32


@pytest.mark.parametrize("missing", ["hidden_size", "num_attention_heads", "vocab_size"])
def test_no_text_model_is_a_sentence(missing: str) -> None:
    config = {k: v for k, v in KNOWN_CONFIGS["demo"].items() if k != missing}
    with pytest.raises(ModelError, match=missing):
        figures_of(config)


@pytest.mark.parametrize(
    "text, n_bytes",
    [
        ("12GiB", 12 * GIB),
        ("12 GB", 12 * 10**9),
        ("0.5gib", GIB // 2),
        ("800MiB", 800 << 20),
        ("1048576B", 1 << 20),
        ("64 b", 64),
        ("16g", 16 * 10**9),
        ("2 KiB", 2048),
    ],
)
def test_amounts_of_memory(text: str, n_bytes: int) -> None:
    assert parse_bytes(text) == n_bytes


@pytest.mark.parametrize(
    "text", ["", "GiB", "-1GiB", "0", "12 PiBs", "1,5GiB", "12GiB extra", "nan"]
)
def test_no_amounts_of_memory(text: str) -> None:
    with pytest.raises(InputError, match="write it like 12GiB"):
        parse_bytes(text)


@pytest.mark.parametrize("text", ["12", " 0.5 ", "1073741824"])
def test_a_number_without_a_unit_is_not_taken_as_bytes(text: str) -> None:
    with pytest.raises(InputError, match="give a unit, such as 12GiB"):
        parse_bytes(text)


def test_container_limit_counts_less_what_can_be_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "memory.max").write_text("100000000\n")
    (tmp_path / "memory.current").write_text("60000000\n")
    (tmp_path / "memory.stat").write_text("anon 30\ninactive_file 20000000\n")
    monkeypatch.setattr(device_memory, "CGROUP", tmp_path)
    found = device_memory.cpu_memory()
    assert (found.total_bytes, found.available_bytes) == (100_000_000, 60_000_000)
    (tmp_path / "memory.max").write_text("max\n")
    assert device_memory.cpu_memory().total_bytes > 100_000_000


def test_plan_of_a_hub_model_that_cannot_be_reached(tmp_path: Path) -> None:
    report = plan_command(Settings(model=LLAMA3_8B, cache_dir=tmp_path), "12GiB")
    assert report["source"] == "built-in figures"
    assert report["device"] == "cuda"
    assert report["chosen"]["quantization"] == "int8"
    assert report["chosen"]["window_tokens"] == 8192
    assert report["chosen"]["fits"] is True
    assert report["kv_bytes_per_token"]["int8"] == 65 * 1024
    assert len(report["options"]) == 9
    assert "It fits." in format_plan(report)


def test_plan_says_what_to_do_when_it_does_not_fit(tmp_path: Path) -> None:
    settings = Settings(model=LLAMA3_8B, cache_dir=tmp_path)
    eight = plan_command(settings, "8GiB")
    assert not eight["chosen"]["fits"] and not eight["fits"]
    assert eight["missing_bytes"] == eight["chosen"]["missing_bytes"] > 2 * GIB
    assert "--quantization int4" in eight["advice"][0]
    assert "It lacks 2.45 GiB." in format_plan(eight)
    four = plan_command(settings, "4GiB")
    assert four["advice"] == ["Choose a smaller model such as meta-llama/Llama-3.2-3B-Instruct."]
    none = plan_command(settings, "100MiB")
    assert "fewer parameters" in none["advice"][0]
    window = plan_command(
        Settings(model=LLAMA3_8B, cache_dir=tmp_path, window_tokens=8192), "9.5GiB"
    )
    assert "--window-tokens" in window["advice"][0]
    shortened = plan_command(settings, "9.5GiB")
    assert shortened["chosen"]["fits"]
    assert "is cut to" in shortened["advice"][0]


def test_plan_of_demo_contacts_nobody_and_needs_no_files(tmp_path: Path) -> None:
    report = plan_command(Settings(cache_dir=tmp_path, device="cpu"))
    assert report["parameters"] == 134_515_008
    assert report["chosen"]["fits"]
    assert report["memory_measured"]


def test_plan_imports_no_torch_where_there_is_no_device(tmp_path: Path) -> None:
    import subprocess
    import sys

    program = (
        "import sys\nfrom pathlib import Path\nfrom chatbot.engine.planning import plan_command\n"
        "from chatbot.settings import Settings\n"
        "plan_command(Settings(cache_dir=Path('none'), device='cpu'))\n"
        "assert 'torch' not in sys.modules and 'transformers' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True, cwd=tmp_path, timeout=60)


def test_32_bit_numbers_only_where_they_are_faster_and_fit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    demo = figures_of(KNOWN_CONFIGS["demo"])
    for fast in (True, False):
        monkeypatch.setattr(planning, "has_fast_bfloat16", lambda fast=fast: fast)
        wide = planning.best_plan(demo, 4 * GIB, PlanRequest())
        assert wide.value_bytes == (2 if fast else 4)
        assert planning.best_plan(demo, GIB, PlanRequest()).value_bytes == 2
        assert planning.best_plan(demo, 4 * GIB, PlanRequest(on_cuda=True)).value_bytes == 2


def test_window_beyond_the_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="trained for 8192"):
        plan_command(Settings(cache_dir=tmp_path, device="cpu", window_tokens=8193))


def test_a_smaller_model_of_the_same_family_and_a_smaller_cache_are_named(tmp_path: Path) -> None:
    qwen = plan_command(Settings(model="Qwen/Qwen2.5-7B-Instruct", cache_dir=tmp_path), "4GiB")
    assert qwen["advice"] == ["Choose a smaller model such as Qwen/Qwen2.5-3B-Instruct."]
    whole = Settings(
        model=LLAMA3_8B, cache_dir=tmp_path, window_tokens=8192, kv_cache_dtype="16bit"
    )
    advice = plan_command(whole, "10GiB")["advice"]
    assert advice[0].startswith("Choose --window-tokens 5")
    assert advice[1] == "Choose --kv-cache-dtype int8."
    assert "--quantization int4" in advice[2]


def test_what_does_not_fit_is_told_with_what_it_lacks(tmp_path: Path) -> None:
    shown = format_plan(plan_command(Settings(model=LLAMA3_8B, cache_dir=tmp_path), "9GiB"))
    assert "int8    16bit lacks 1.45 GiB" in shown


def test_the_bound_on_the_address_space_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    import resource

    taken = device_memory.address_space_bytes()
    assert taken is not None
    limits = (taken + 64 * 2**20, -1)
    monkeypatch.setattr(resource, "getrlimit", lambda kind: limits)
    assert device_memory.cpu_memory().available_bytes <= 65 * 2**20


def test_without_a_cache_the_plan_says_what_does_not_fit(tmp_path: Path) -> None:
    settings = Settings(cache_dir=tmp_path, device="cpu", kv_cache="none")
    report = plan_command(settings, "100MiB")
    assert not report["chosen"]["fits"] and report["advice"]


def test_the_bound_on_caches_that_cuts_the_window_is_told(tmp_path: Path) -> None:
    settings = Settings(cache_dir=tmp_path, device="cpu", kv_cache_bytes=ByteSize(20 << 20))
    advice = plan_command(settings, "4GiB")["advice"]
    assert any("kv_cache_bytes" in sentence for sentence in advice)
