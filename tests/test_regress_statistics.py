"""Statuses and comparisons of sampled cases: as the statistics say, and no false alarms."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from regress_tools import PASSING, load, run

from chatbot.regression.compare import compare
from chatbot.regression.judge import judge_case
from chatbot.regression.results import CaseResult, Fingerprint, Metrics, RunResult, SampleResult
from chatbot.regression.statistics import fisher_worse, median, wilson
from chatbot.regression.suite import Case

PROBABILITIES = [1.0] * 6 + [0.97] * 4 + [0.9] * 4 + [0.8] * 4 + [0.6] * 4 + [0.3] * 4 + [0.0] * 4
SAMPLES = 10
PASS_RATE = 0.7


@pytest.mark.parametrize(
    ("passes", "samples", "low", "high"),
    [(5, 5, 0.57, 1.0), (10, 10, 0.72, 1.0), (20, 20, 0.84, 1.0), (0, 10, 0.0, 0.28), (0, 0, 0, 1)],
)
def test_wilson_interval(passes: int, samples: int, low: float, high: float) -> None:
    assert wilson(passes, samples) == pytest.approx((low, high), abs=0.005)


@pytest.mark.parametrize(
    ("before", "after", "p"),
    [
        ((5, 5), (1, 5), 0.024),
        ((5, 5), (2, 5), 0.083),
        ((10, 10), (6, 10), 0.043),
        ((9, 10), (5, 10), 0.070),
        ((5, 10), (5, 10), 0.672),
        ((0, 5), (5, 5), 1.0),
        ((1, 1), (0, 1), 0.5),
    ],
)
def test_fisher_is_one_sided(before: tuple[int, int], after: tuple[int, int], p: float) -> None:
    assert fisher_worse(before, after) == pytest.approx(p, abs=0.001)


def test_median() -> None:
    assert [median(v) for v in ([], [3.0], [1.0, 2.0], [9.0, 1.0, 5.0])] == [0.0, 3.0, 1.5, 5.0]


@pytest.mark.slow
def test_a_sampled_engine_gets_the_statuses_that_its_chances_give(tmp_path: Path) -> None:
    cases = "".join(
        f"  - id: case-{n}\n    why: Its chance is {p}.\n    seed: {1000 * n}\n"
        "    turns:\n      - user: What is it?\n"
        f"        reply: {{behaviour: chance, right: {p}, text: It is 7.}}\n"
        "        assert: [contains: '7']\n"
        for n, p in enumerate(PROBABILITIES)
    )
    samples = 5
    result = run(tmp_path, cases, f"defaults: {{samples: {samples}, pass_rate: {PASS_RATE}}}\n")
    assert len(result.cases) == 30
    covered = 0
    for case, p in zip(result.cases, PROBABILITIES, strict=True):
        share = case.passes / case.samples
        expected = "passed" if share == 1 else "flaky" if share >= PASS_RATE else "failed"
        assert (case.status, case.samples, case.sampled) == (expected, samples, True)
        assert (case.low, case.high) == wilson(case.passes, case.samples)
        covered += case.low <= p <= case.high
    statuses = [case.status for case in result.cases]
    assert statuses[:6] == ["passed"] * 6 and statuses[-8:] == ["failed"] * 8
    assert "flaky" in statuses
    assert covered >= 27  # nine of ten; an interval of 95 % should hold 28.5 of 30


def drawn(template: Case, chances: Sequence[float], seed: int) -> RunResult:
    """A run whose cases are right with these chances."""
    chance = random.Random(seed)
    cases: list[CaseResult] = []
    for n, p in enumerate(chances):
        samples = [SampleResult(i, chance.random() < p) for i in range(SAMPLES)]
        case = replace(template, id=f"case-{n}", pass_rate=PASS_RATE)
        cases.append(judge_case(case, samples, metrics=Metrics(), duration_s=0.0, temperature=1.0))
    return RunResult(Fingerprint(), tuple(cases))


def test_what_has_not_changed_is_never_regressed_and_what_has_always_is(template: Case) -> None:
    broken = [0.05 if n < 3 else p for n, p in enumerate(PROBABILITIES)]
    for repetition in range(20):
        before = drawn(template, PROBABILITIES, 2 * repetition)
        again = drawn(template, PROBABILITIES, 2 * repetition + 1)
        assert not compare(before, again).regressed
        worse = compare(before, drawn(template, broken, 2 * repetition + 1))
        assert {"case-0", "case-1", "case-2"} == {row.id for row in worse.of("regressed")}


def test_a_fall_that_chance_may_give_is_called_worse(template: Case) -> None:
    def result(passes: int, temperature: float) -> RunResult:
        samples = [SampleResult(i, i < passes) for i in range(5)]
        case = judge_case(
            template, samples, metrics=Metrics(), duration_s=0.0, temperature=temperature
        )
        return RunResult(Fingerprint(), (case,))

    [row] = compare(result(5, 1.0), result(4, 1.0)).rows
    assert (row.change, row.p) == ("worse", 0.5)
    assert compare(result(5, 1.0), result(1, 1.0)).regressed
    # Greedy replies are the same each time: what fell, fell.
    [row] = compare(result(5, 0.0), result(4, 0.0)).rows
    assert row.change == "regressed"
    [row] = compare(result(4, 1.0), result(5, 1.0)).rows
    assert row.change == "fixed"


@pytest.fixture
def template(tmp_path: Path) -> Case:
    """Any case; its samples are given to it."""
    return load(tmp_path, PASSING).cases[0]
