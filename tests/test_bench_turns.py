"""The measurement of a long conversation, over a tiny model: right figures, and faults noticed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from cli import inside
from tiny_llama import ByteTokenizer, tiny_engine, tiny_model

from chatbot.commands import bench_turns
from chatbot.commands.bench_text import QUESTION_CHARACTERS, messages
from chatbot.engine import kv_store
from chatbot.engine.local import TransformersEngine

TURNS = 6


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture
def arguments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[object]:
    model = tiny_model(window_tokens=1024)

    def load(settings: object, report: object) -> TransformersEngine:
        loaded = tiny_engine(model, window_tokens=1024, piece_tokens=256)._loaded
        assert loaded is not None
        return TransformersEngine(loaded, ByteTokenizer())

    monkeypatch.setattr(bench_turns, "load_engine", load)
    messages = [
        {"role": role, "content": f"What is in room number {n} of the old house?"}
        for n in range(9)
        for role in ("user", "assistant")
    ]
    path = tmp_path / "talk.json"
    path.write_text(json.dumps(messages), encoding="utf-8")
    return [
        *("bench", "turns", "--json", "--turns", TURNS, "--conversation", path),
        *("--window-tokens", 1024, "--reply-tokens", 16, "--summary", "extractive"),
        *("--system-prompt", "Be brief.", "--data-dir", tmp_path / "data"),
    ]


def figures(arguments: list[object]) -> dict[str, Any]:
    outcome = inside(*arguments)
    assert outcome.code == 0, outcome.err
    found = outcome.lines[-1]
    assert isinstance(found, dict)
    return found


def test_figures_of_a_short_run(arguments: list[object], tmp_path: Path) -> None:
    found = figures(arguments)
    assert found["turns"] == found["checked"] == TURNS
    assert found["mismatches"] == 0, found["ties"]
    assert 0 < found["kv_bytes_max"] <= found["kv_bytes_bound"]
    assert found["reused_share"] > 0.5
    assert found["reused_front_share"] == 1
    assert found["first_token_speedup"] > 1
    assert found["first_token_ratio"] > 0 < found["rss_ratio"]
    assert not (tmp_path / "data").exists()


def test_a_cache_that_holds_something_else_is_noticed(
    arguments: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    cut = kv_store._cut

    @torch.inference_mode()
    def spoil(cache: Any, keep_tokens: int) -> Any:
        for layer in cache.layers:
            for rows in layer.rows:
                rows.held.neg_()
        return cut(cache, keep_tokens)

    monkeypatch.setattr(kv_store, "_cut", spoil)
    assert figures(arguments)["mismatches"] > 0


@pytest.mark.long
def test_a_second_run_without_recall(arguments: list[object]) -> None:
    found = figures([*arguments, "--recall-off-too", "--check-every", 0])
    without = found["recall_off"]
    assert without["turns"] == TURNS
    assert without["turns_with_recall"] == 0
    assert without["reused_share"] > 0.5
    assert 0 < without["kv_bytes_max"] <= without["kv_bytes_bound"]


def test_a_bound_that_is_passed_ends_the_run(
    arguments: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bytes are looked at inside of the run, at every event."""
    from chatbot.engine.kv_store import PrefixStore

    honest = PrefixStore.figures

    def more(store: PrefixStore) -> Any:
        found = honest(store)
        return replace(found, lent_bytes=found.lent_bytes and found.bound_bytes + 1)

    monkeypatch.setattr(PrefixStore, "figures", more)
    outcome = inside(*arguments)
    assert outcome.code == 1
    assert "above their bound" in outcome.err


def test_the_text_is_long_and_does_not_repeat_itself() -> None:
    texts = messages(None)
    assert len(texts) == len(set(texts)) > 400
    assert all(len(text) <= QUESTION_CHARACTERS for text in texts)
    assert not any("::=" in text or text[0].isspace() for text in texts)


@pytest.mark.parametrize("wrong", [["--turns", 1], ["--check-every", -1]])
def test_impossible_numbers_are_refused(arguments: list[object], wrong: list[object]) -> None:
    outcome = inside(*arguments, *wrong)
    assert outcome.code == 2
    assert "at least" in outcome.err
