"""One suite under several settings: every combination is a run, all of them one table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from chatbot.errors import InputError
from chatbot.records import to_plain
from chatbot.regression.results import CaseResult, RunResult
from chatbot.regression.sampling import RunOptions

MOST_CELLS = 64


@dataclass(frozen=True, slots=True)
class Cell:
    """One combination of values, and its run."""

    values: tuple[tuple[str, str], ...]
    run: RunResult

    @property
    def name(self) -> str:
        return " ".join(f"{key}={value}" for key, value in self.values)


def run_matrix(
    axes: Sequence[tuple[str, tuple[str, ...]]],
    options: RunOptions,
    run: Callable[[RunOptions], RunResult],
    *,
    check: Callable[[RunOptions], object] = lambda _: None,
) -> Iterator[Cell]:
    """The cells one after the other, the last axis fastest; ends after an interrupted run.

    `check` sees the options of all cells before the first is run. Raises InputError for no axes,
    or too many combinations.
    """
    if not axes:
        raise InputError(
            "matrix needs --set NAME=VALUE,VALUE, such as --set window_tokens=512,1024"
        )
    cells = list(product(*([(name, value) for value in values] for name, values in axes)))
    if len(cells) > MOST_CELLS:
        raise InputError(f"These are {len(cells)} runs; choose at most {MOST_CELLS}.")
    every = [replace(options, overrides=(*options.overrides, *values)) for values in cells]
    for one in every:
        check(one)
    for values, one in zip(cells, every, strict=True):
        result = run(one)
        yield Cell(values, result)
        if result.interrupted:
            return


def matrix_lines(cells: Sequence[Cell]) -> Iterator[str]:
    """A table: a line for each case, a column for each cell, the figures below."""
    for number, cell in enumerate(cells, start=1):
        yield f"({number}) {cell.name}"
    ids = list(dict.fromkeys(case.id for cell in cells for case in cell.run.cases))
    width = max([len(i) for i in ids] + [len("latency, slowest case")])
    yield _line("", [f"({number})" for number in range(1, len(cells) + 1)], width)
    for case_id in ids:
        found = [_of(cell, case_id) for cell in cells]
        yield _line(case_id, [_shown(case) for case in found], width)
    yield _line("good", [_good(cell.run) for cell in cells], width)
    yield _line("latency, slowest case", [_slowest(cell.run) for cell in cells], width)
    yield _line("longest prompt, tokens", [_longest(cell.run) for cell in cells], width)


def matrix_record(cells: Sequence[Cell]) -> dict[str, Any]:
    """The table as a JSON object, every run whole."""
    return {
        "cells": [{"set": dict(cell.values), "run": to_plain(cell.run)} for cell in cells],
        "good": all(cell.run.good for cell in cells),
    }


def _line(name: str, values: Sequence[str], width: int) -> str:
    return f"{name:<{width}}  " + "  ".join(f"{value:>12}" for value in values)


def _of(cell: Cell, case_id: str) -> CaseResult | None:
    return next((case for case in cell.run.cases if case.id == case_id), None)


def _shown(case: CaseResult | None) -> str:
    if case is None:
        return "-"
    return case.status if case.samples <= 1 else f"{case.status} {case.passes}/{case.samples}"


def _good(run: RunResult) -> str:
    return f"{sum(case.good for case in run.cases)}/{len(run.cases)}"


def _slowest(run: RunResult) -> str:
    return f"{max((case.metrics.latency_p50_s for case in run.cases), default=0.0):.2f} s"


def _longest(run: RunResult) -> str:
    return str(max((case.metrics.prompt_tokens_max for case in run.cases), default=0))
