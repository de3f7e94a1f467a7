"""Writes suites for tests and runs them on the scripted engine."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from chatbot.regression.results import CaseResult, RunResult
from chatbot.regression.runner import run_suite
from chatbot.regression.sampling import RunOptions
from chatbot.regression.suite import Suite, load_suites
from chatbot.settings import Settings

SCRIPTED = Settings(model="scripted", embedding_model="none")

PASSING = """
  - id: knows
    why: A fact of the last turn is in the prompt.
    tags: [quick]
    turns:
      - user: My dog is called Bori.
      - user: What is my dog called?
        assert: [contains: Bori]
"""
FAILING = """
  - id: never-told
    why: What nobody said cannot be known.
    turns:
      - user: What is my cat called?
        assert: [contains: Mimi]
"""


def write(folder: Path, cases: str, head: str = "", name: str = "suite.yaml") -> Path:
    """A suite file with these cases."""
    path = folder / name
    path.write_text(f"version: 1\n{head}cases:\n{cases}", encoding="utf-8")
    return path


def load(folder: Path, cases: str, head: str = "") -> Suite:
    return load_suites([write(folder, cases, head)])


def run(
    folder: Path, cases: str, head: str = "", *, overrides: Sequence[tuple[str, str]] = ()
) -> RunResult:
    """Run a suite of these cases."""
    suite = load(folder, cases, head)
    return run_suite(suite, suite.cases, RunOptions(SCRIPTED, tuple(overrides)))


def run_one(folder: Path, turns: str, case: str = "", head: str = "") -> CaseResult:
    """Run one case with these turns; `case` is what else it says."""
    text = f"  - id: one\n    why: To be tried.\n{case}    turns:\n{turns}"
    [result] = run(folder, text, head).cases
    return result
