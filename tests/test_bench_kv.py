"""The measurement of cache kinds, on a tiny model: its keys, its arithmetic, the text it reads."""

from __future__ import annotations

import argparse
import io
import math
from pathlib import Path
from typing import Any

import pytest
import torch
from tiny_llama import LetterTokenizer, tiny_engine, tiny_model

from benchmarks import peers
from chatbot.commands import bench_kv, text_score
from chatbot.commands.bench_engine import OpenEngine
from chatbot.commands.text_score import Score, score
from chatbot.console import Console
from chatbot.errors import InputError
from chatbot.settings import Settings


def arguments(text: Path | None = None, tokens: int = 150) -> argparse.Namespace:
    return argparse.Namespace(text=text, tokens=tokens)


@pytest.fixture
def letters(tmp_path: Path) -> Path:
    path = tmp_path / "text.txt"
    path.write_text("".join(chr(0xAC00 + 60 + n * 7 % 150) for n in range(200)))
    return path


def test_the_report_has_each_policy_against_16_bit(
    monkeypatch: pytest.MonkeyPatch, letters: Path
) -> None:
    def opened(settings: Settings, console: Console) -> OpenEngine:
        assert settings.kv_cache_dtype == "auto"
        model = tiny_model()
        engine = tiny_engine(model)
        assert engine._loaded is not None
        return OpenEngine(engine, model, engine._loaded)

    monkeypatch.setattr(bench_kv, "open_engine", opened)
    monkeypatch.setattr(bench_kv, "CACHED_TOKENS", 80)
    monkeypatch.setattr(bench_kv, "ROUNDS", 2)
    out = io.StringIO()
    report = bench_kv.measure(arguments(letters), Settings(), Console(out, io.StringIO()))
    policies = report["policies"]
    assert list(policies) == ["16bit", "int8", "int4"]
    base = policies["16bit"]
    assert base["bytes_ratio"] == base["decode_ratio"] == base["top1_agreement"] == 1
    assert base["perplexity_change"] == 0
    # 16 numbers a head: scales weigh more than in a real model.
    assert policies["int8"]["bytes_ratio"] == 18 / 32
    assert policies["int4"]["bytes_ratio"] == 0.3438
    assert 0 < abs(policies["int8"]["perplexity_change"]) < 0.02
    assert 0.5 < policies["int4"]["top1_agreement"] < 1
    assert all(row["cache_bytes"] > 0 and row["decode_ratio"] > 0 for row in policies.values())
    assert "int4" in out.getvalue()


def test_perplexity_is_that_of_one_pass_over_each_window(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(text_score, "WINDOW_TOKENS", 40)
    monkeypatch.setattr(text_score, "PIECE_TOKENS", 16)
    model, ids = tiny_model(), [60 + n * 7 % 150 for n in range(71)]
    found = score(model, ids, "16bit")
    surprises, likeliest = [], []
    for start in (0, 40):
        window = torch.tensor([ids[start : start + 41]])
        with torch.inference_mode():
            logits = model(window).logits[0, :-1].log_softmax(-1)
        surprises.append(-logits.gather(1, window[0, 1:, None]))
        likeliest += logits.argmax(-1).tolist()
    wanted = torch.cat(surprises).mean()
    assert found.perplexity == pytest.approx(math.exp(float(wanted)), rel=1e-3)
    assert found.likeliest == tuple(likeliest)


def test_agreement_is_the_share_of_equal_places() -> None:
    assert Score(1.0, (1, 2, 3, 4)).agreement(Score(2.0, (1, 2, 9, 4))) == 0.75


def test_too_little_text_is_a_sentence(letters: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="--tokens"):
        bench_kv.measure(arguments(letters, 3), Settings(), Console(io.StringIO(), io.StringIO()))
    short = tmp_path / "short.txt"
    short.write_text("가나다")
    with pytest.raises(InputError, match="3 tokens"):
        bench_kv.text_ids(LetterTokenizer(), short, 100)


def test_ratios_of_peers_are_of_medians_and_missing_ones_are_none() -> None:
    def run(turn: float, decode: float, peak: float) -> dict[str, float]:
        return {"turn_s": turn, "decode_token_s": decode, "peak_bytes": peak}

    runs: dict[str, Any] = {
        "ours": [run(9, 1, 50), run(2, 2, 50), run(4, 2, 60)],
        "plain": [run(10, 8, 100)],
        "q8_0": [run(5, 1, 10)],
    }
    found = peers.summary(runs)
    assert found["rag_turn_vs_q8_0"] == 0.8
    assert found["rag_turn_vs_q4_1"] is None
    assert found["decode_vs_plain"] == 4
    assert found["rss_vs_plain"] == 0.5


def test_peers_that_are_missing_are_said_in_one_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    run = {"turn_s": 1.0, "decode_token_s": 1.0, "peak_bytes": 1.0}
    monkeypatch.setattr(peers, "_child", lambda name, file, text: run)
    assert peers.main(["--repeats", "1", "--json"]) == 0
    printed = capsys.readouterr()
    assert "pip install -r benchmarks/requirements-peers.txt" in printed.err
    assert '"rag_turn_vs_q4_1": null' in printed.out
