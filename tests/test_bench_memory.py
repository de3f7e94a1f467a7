"""The measurements of memory over a tiny model: faults, plan, growth and profile."""

from __future__ import annotations

import gc
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from cli import inside
from tiny_llama import ByteTokenizer, tiny_engine, tiny_model

from chatbot.commands import bench_faults, bench_plan, bench_profile, bench_reproduce_oom
from chatbot.commands.bench_engine import OpenEngine
from chatbot.commands.columns import columns
from chatbot.commands.plan_child import Case
from chatbot.engine.local import TransformersEngine
from chatbot.settings import Settings

SHORT = ("--system-prompt", "Be brief.", "--reply-tokens", 24, "--summary-tokens", 32)


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def still_heap() -> Iterator[None]:
    """What was there before is not looked through at each of the many collections."""
    tiny_model()  # imports the rest
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest, still_heap: None) -> None:
    """The tiny model in place of the configured one."""
    model = tiny_model(seed=getattr(request, "param", 0), window_tokens=1024)

    def opened(settings: Settings, console: object) -> OpenEngine:
        piece = settings.prefill_piece_tokens
        loaded = tiny_engine(model, window_tokens=1024, piece_tokens=piece)._loaded
        assert loaded is not None
        return OpenEngine(TransformersEngine(loaded, ByteTokenizer()), model, loaded)

    for bench in (bench_faults, bench_profile):
        monkeypatch.setattr(bench, "open_engine", opened)
    monkeypatch.setattr(bench_faults, "_bounded", lambda settings, console: {"recovered": True})


def figures(*arguments: object) -> dict[str, Any]:
    outcome = inside("bench", *arguments, "--json")
    assert outcome.code == 0, outcome.err
    found = json.loads(outcome.out.splitlines()[-1])
    assert isinstance(found, dict)
    return found


# What a random model says depends on the machine's arithmetic; 5 is one that ends at once.
@pytest.mark.parametrize("tiny", [0, 5], indirect=True)
@pytest.mark.usefixtures("tiny")
def test_the_chat_goes_on_after_every_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench_faults, "STORY", bench_faults.STORY[:300])
    monkeypatch.setattr(bench_faults, "WARM_UPS", 0)
    found = figures("faults", "--times", 1, *SHORT)
    assert found["places"].keys() == {"first_token", "token_20", "piece_3", "fold", "warm"}
    assert found["injected"] == found["recovered"] == 5, found
    assert found["hangs"] == 0
    assert found["places"]["token_20"]["finishes"] == {"memory": 1}
    assert found["steps"]["stopped"] == 1
    assert 0.9 < found["rss_ratio"] < 1.1
    assert found["bounded"] == {"recovered": True}


@pytest.mark.usefixtures("tiny")
def test_a_reply_that_never_ends_is_a_hang(monkeypatch: pytest.MonkeyPatch) -> None:
    class Stuck(bench_faults.FaultyEngine):
        def generate(self, *arguments: Any, **options: Any) -> Any:
            options["stop"].wait(5)
            return super().generate(*arguments, **options)

    monkeypatch.setattr(bench_faults, "FaultyEngine", Stuck)
    monkeypatch.setattr(bench_faults, "HANG_S", 0.2)
    monkeypatch.setattr(bench_faults, "_settled", lambda services: 1)
    found = figures("faults", "--times", 1, *SHORT)
    assert found["hangs"] == 5
    assert found["recovered"] == 0


def test_impossible_numbers_are_refused() -> None:
    outcome = inside("bench", "faults", "--times", 0)
    assert (outcome.code, "at least once" in outcome.err) == (2, True)


def child(settings: Settings, case: Case) -> dict[str, Any]:
    """A process that takes just what the plan says, and a little more at its peak."""
    tokens = (case.prompt_tokens + case.reply_tokens) * case.replies_at_once
    planned = {"weights_bytes": 1000, "kv_bytes": 2 * tokens, "working_bytes": 50}
    planned |= {"runtime_bytes": 500, "peak_bytes": 1550 + 2 * tokens}
    measured = {**planned, "weights_bytes": 1010, "peak_bytes": planned["peak_bytes"] + 200}
    return {"tokens": tokens, "planned": planned, "measured": measured}


def test_errors_of_the_plan_are_the_largest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench_plan, "in_child", child)
    found = figures("plan")
    assert len(found["rows"]) == 6
    assert found["kv_error"] == 0
    assert found["weights_error"] == round(10 / 1010, 4)
    assert found["peak_error"] == round(200 / (1550 + 1024 + 200), 4)


def test_growth_is_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench_reproduce_oom, "in_child", child)
    rows = figures("reproduce-oom")["rows"]
    assert {row["grows"] for row in rows} == {"prompt", "reply", "replies at once"}
    for row in rows:
        parts = row["weights_bytes"] + row["kv_bytes"] + row["work_bytes"]
        assert parts + 500 == row["peak_bytes"]
    at_once = [row["kv_bytes"] for row in rows if row["grows"] == "replies at once"]
    assert at_once == [at_once[0], 2 * at_once[0], 4 * at_once[0]]


@pytest.mark.usefixtures("tiny")
def test_a_turn_is_profiled(tmp_path: Path) -> None:
    out = tmp_path / "profile"
    found = figures(
        *("profile", "--out", out, "--reply-tokens", 4, "--system-prompt", "Be brief."),
        *("--window-tokens", 1024),
    )
    assert found["completion_tokens"] == 4
    assert any("mm" in operation["name"] for operation in found["by_time"])
    times = [operation["time_us"] for operation in found["by_time"]]
    assert times == sorted(times, reverse=True) and times[0] > 0
    assert found["by_memory"][0]["allocated_bytes"] > 0
    assert json.loads(Path(found["trace"]).read_text(encoding="utf-8"))["traceEvents"]


def test_a_file_in_the_way_of_the_traces(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("", encoding="utf-8")
    outcome = inside("bench", "profile", "--out", tmp_path / "out")
    assert (outcome.code, "is no folder" in outcome.err) == (2, True)


def test_columns_are_aligned() -> None:
    assert columns(["a", "bb"], [["long", "1"], ["b", "22"]]) == "a     bb\nlong   1\nb     22"


@pytest.mark.long
@pytest.mark.model
@pytest.mark.slow
def test_the_plan_is_right_for_the_demo_model(model_cache: Path) -> None:
    from chatbot.commands.plan_child import in_child

    settings = Settings(cache_dir=model_cache, device="cpu", quantization="none", threads=1)
    row = in_child(settings, Case(value_bytes=2, prompt_tokens=504, reply_tokens=8))
    assert row["planned"]["kv_bytes"] == row["measured"]["kv_bytes"]
    assert bench_plan.largest_error([row], "weights_bytes") <= 0.02
    assert bench_plan.largest_error([row], "peak_bytes") <= 0.10
