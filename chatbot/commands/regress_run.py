"""Runs suites for `regress`: arguments to a run, and the run to its reports."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from chatbot.commands.regress_tools import comparison_record, paint_for, print_lines
from chatbot.console import Console
from chatbot.errors import InputError
from chatbot.records import to_plain
from chatbot.regression.compare import Comparison, compare
from chatbot.regression.matrix import matrix_lines, matrix_record, run_matrix
from chatbot.regression.outputs import check_outputs, write_text
from chatbot.regression.report_html import html_report
from chatbot.regression.report_junit import junit_xml
from chatbot.regression.report_text import case_lines, comparison_lines, summary_lines
from chatbot.regression.results import RunResult, load_run, save_run
from chatbot.regression.runner import OnCase, Progressed, Selection, run_suite, select
from chatbot.regression.sampling import RunOptions
from chatbot.regression.suite import Case, Suite, load_suites
from chatbot.regression.suite_settings import parse_assignment
from chatbot.regression.target import SCRIPTED
from chatbot.settings import Settings

INTERRUPTED = 130
MAX_SAMPLES = 1000


@dataclass(frozen=True, slots=True)
class _Wishes:
    """The arguments, checked before anything is run."""

    base: Settings
    axes: tuple[tuple[str, tuple[str, ...]], ...]
    baseline: RunResult | None
    ids: frozenset[str] | None
    """Only these cases; None for all."""
    tags: tuple[str, ...]


def run_suites(arguments: argparse.Namespace, settings: Settings, console: Console) -> int:
    """Run the suites once and report."""
    wishes = _wishes(arguments, settings)
    for name, values in wishes.axes:
        if len(values) > 1:
            raise InputError(f"--set {name} has several values; only 'regress matrix' takes them.")
    overrides = tuple((name, values[0]) for name, values in wishes.axes)
    options = RunOptions(wishes.base, overrides, arguments.samples)
    if wishes.ids is not None and not wishes.ids:
        console.note(f"No case failed in {arguments.filter_failing}; there is nothing to run.")
        return 0
    result = _run(arguments, wishes, options, console, on_case=_shower(arguments, console))
    comparison = compare(wishes.baseline, result) if wishes.baseline else None
    _report(arguments, result, comparison, console)
    if result.interrupted:
        return INTERRUPTED
    return int(not result.good or (comparison is not None and comparison.regressed))


def run_cells(arguments: argparse.Namespace, settings: Settings, console: Console) -> int:
    """Run the suites under every combination of the settings."""
    wishes = _wishes(arguments, settings)
    if not arguments.what:
        raise InputError("matrix takes suites, such as: regress matrix SUITE --set NAME=A,B")

    def run(options: RunOptions) -> RunResult:
        console.progress(" ".join(f"{name}={value}" for name, value in options.overrides))
        return _run(arguments, wishes, options, console, on_case=lambda _: None)

    _, cases = _selected(arguments, wishes)

    def check(options: RunOptions) -> None:
        for case in cases:
            options.settings(case)

    options = RunOptions(wishes.base, (), arguments.samples)
    cells = list(run_matrix(wishes.axes, options, run, check=check))
    if arguments.json:
        console.json(matrix_record(cells))
    else:
        print_lines(matrix_lines(cells), console)
    if any(cell.run.interrupted for cell in cells):
        return INTERRUPTED
    return int(not all(cell.run.good for cell in cells))


def base_settings(settings: Settings) -> Settings:
    """A scripted model needs no embedding model, unless one is asked for."""
    if settings.model == SCRIPTED and settings.embedding_model == "embedded":
        return settings.model_copy(update={"embedding_model": "none"})
    return settings


def _wishes(arguments: argparse.Namespace, settings: Settings) -> _Wishes:
    if arguments.samples is not None and not 1 <= arguments.samples <= MAX_SAMPLES:
        text = f"--samples must be from 1 to {MAX_SAMPLES}, not {arguments.samples}."
        raise InputError(text)
    if arguments.workers < 1:
        raise InputError(f"--workers must be at least 1, not {arguments.workers}.")
    ids = None
    if arguments.filter_failing:
        earlier = load_run(arguments.filter_failing)
        ids = frozenset(case.id for case in earlier.cases if not case.good)
    return _Wishes(
        base=base_settings(settings),
        axes=tuple(parse_assignment(text) for text in arguments.set),
        baseline=load_run(arguments.baseline) if arguments.baseline else None,
        ids=ids,
        tags=tuple(tag for tag in (arguments.tags or "").split(",") if tag),
    )


def _run(
    arguments: argparse.Namespace,
    wishes: _Wishes,
    options: RunOptions,
    console: Console,
    *,
    on_case: OnCase,
) -> RunResult:
    suite, cases = _selected(arguments, wishes)
    reports = {name: getattr(arguments, name) for name in ("save", "html", "junit")}
    check_outputs({f"--{name}": path for name, path in reports.items() if path}, suite.files)
    return run_suite(
        suite,
        cases,
        options,
        n_workers=arguments.workers,
        on_case=on_case,
        progress=console.model_progress,
    )


def _selected(arguments: argparse.Namespace, wishes: _Wishes) -> tuple[Suite, tuple[Case, ...]]:
    suite = load_suites([Path(name) for name in arguments.what])
    return suite, select(suite, Selection(wishes.tags, wishes.ids))


def _shower(arguments: argparse.Namespace, console: Console) -> OnCase:
    """Shows each case as it ends, and how long the rest will take."""
    paint = paint_for(console)

    def show(progressed: Progressed) -> None:
        if not arguments.json:
            print_lines(case_lines(progressed.result, paint), console)
        console.progress(
            f"{progressed.done} of {progressed.total} cases, about {progressed.left_s:.0f} s left"
        )

    return show


def _report(
    arguments: argparse.Namespace,
    result: RunResult,
    comparison: Comparison | None,
    console: Console,
) -> None:
    if arguments.save:
        save_run(result, arguments.save)
    if arguments.html:
        write_text(arguments.html, html_report(result, comparison))
    if arguments.junit:
        write_text(arguments.junit, junit_xml(result))
    if arguments.json:
        record: dict[str, Any] = to_plain(result)
        if comparison is not None:
            record["comparison"] = comparison_record(comparison)
        console.json(record)
        return
    if comparison is not None:
        print_lines(comparison_lines(comparison, paint_for(console)), console)
    print_lines(summary_lines(result, paint_for(console)), console)
