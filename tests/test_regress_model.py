"""Suites on the embedded demo model: loaded once, its figures and revision in the result."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from regress_tools import load

from chatbot.engine.base import Engine
from chatbot.regression.runner import Selection, run_suite, select
from chatbot.regression.sampling import RunOptions
from chatbot.regression.suite import load_suites
from chatbot.settings import Settings

pytestmark = pytest.mark.model

CASES = """
  - id: short
    why: Replies keep to their limit.
    settings: {reply_tokens: 8}
    turns:
      - {user: Say hello., reply: for scripted runs only, assert: [max-words: 10, finish: length]}
      - {user: Go on., assert: [reused-share: 0.3, kv-bytes: {min: 1}]}
  - id: sampled
    why: Seeds make sampled replies repeatable.
    samples: 2
    settings: {reply_tokens: 8, temperature: 0.9, window_tokens: 512}
    turns:
      - {user: Say hello., assert: [prompt-tokens: 400]}
  - id: scripted-only
    why: It is skipped here.
    needs: scripted
    turns: [{user: hi}]
"""


class Shared:
    """The engine of all tests, which nobody may close."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def close(self) -> None:
        pass


def test_a_suite_runs_on_a_real_model(
    demo_engine: Engine, model_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded: list[Settings] = []

    def shared(settings: Settings) -> Any:
        loaded.append(settings)
        return Shared(demo_engine)

    monkeypatch.setattr("chatbot.regression.target.load_engine", shared)
    suite = load(tmp_path, CASES)
    options = RunOptions(Settings(cache_dir=model_cache, embedding_model="none"))
    result = run_suite(suite, suite.cases, options)
    statuses = {case.id: case.status for case in result.cases}
    assert statuses == {"short": "passed", "sampled": "passed", "scripted-only": "skipped"}
    assert len(loaded) == 1
    short = result.cases[0]
    assert short.metrics.kv_bytes_max > 0 and short.metrics.process_bytes_max > 100 << 20
    assert result.cases[1].sampled and not short.sampled
    mark = result.fingerprint
    assert len(mark.revision) == 16 and mark.kv_cache != "auto" and mark.device != "none"
    again = run_suite(suite, suite.cases[1:2], options)
    assert again.cases[0].metrics.completion_tokens == result.cases[1].metrics.completion_tokens


@pytest.mark.long
def test_the_smoke_part_of_the_shipped_suites(
    demo_engine: Engine, model_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "chatbot.regression.target.load_engine", lambda settings: Shared(demo_engine)
    )
    suite = load_suites(sorted((Path(__file__).parent / "conversations").glob("*.yaml")))
    cases = select(suite, Selection(tags=("smoke",)))
    options = RunOptions(Settings(cache_dir=model_cache, embedding_model="none"))
    result = run_suite(suite, cases, options)
    assert len(cases) >= 2 and all(case.status == "passed" for case in result.cases)
