"""All cases of a suite, one after the other, with progress; keeps what is done when interrupted."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime

from chatbot.engine.cache_folder import Progress, ignore_progress
from chatbot.errors import InputError
from chatbot.regression.fingerprint import fingerprint
from chatbot.regression.judge import skipped_case
from chatbot.regression.results import CaseResult, RunResult
from chatbot.regression.sampling import RunOptions, run_case
from chatbot.regression.suite import Case, Suite
from chatbot.regression.target import SCRIPTED, Workshop
from chatbot.regression.workers import run_in_processes


@dataclass(frozen=True, slots=True)
class Selection:
    """Which cases to run: those with any of the tags, and of these the named ones."""

    tags: tuple[str, ...] = ()
    ids: frozenset[str] | None = None


@dataclass(frozen=True, slots=True)
class Progressed:
    """A case has ended."""

    result: CaseResult
    done: int
    total: int
    left_s: float
    """About so long until all are done."""


OnCase = Callable[[Progressed], None]


def select(suite: Suite, selection: Selection) -> tuple[Case, ...]:
    """The cases to run, in their order. Raises InputError when there are none."""
    cases = [
        case
        for case in suite.cases
        if (not selection.tags or set(selection.tags) & set(case.tags))
        and (selection.ids is None or case.id in selection.ids)
    ]
    if not cases and selection.ids is not None:
        raise InputError("None of the cases that failed in the earlier run is selected here.")
    if not cases:
        tags = sorted({tag for case in suite.cases for tag in case.tags})
        raise InputError(f"No case is selected; the suite has the tags {', '.join(tags) or '-'}.")
    return tuple(cases)


def run_suite(
    suite: Suite,
    cases: Sequence[Case],
    options: RunOptions,
    *,
    n_workers: int = 1,
    on_case: OnCase = lambda _: None,
    progress: Progress = ignore_progress,
) -> RunResult:
    """Run the cases. Ctrl-C ends it with what is done.

    Raises SettingsError before anything is run, ModelError when the model cannot be loaded, and
    InputError for more than one worker with a model, which would be loaded in each.
    """
    for case in cases:
        if options.settings(case).model != SCRIPTED and n_workers > 1:
            raise InputError("Several --workers need --model scripted; leave the flag out.")
    started, began = time.perf_counter(), datetime.now(UTC).isoformat(timespec="seconds")
    results: list[CaseResult] = []
    interrupted = False
    with Workshop(progress=progress) as workshop:
        mark = fingerprint(suite, options, workshop)
        try:
            made = _results(cases, options, workshop, suite.files, n_workers)
            with closing(made):
                for result in made:
                    results.append(result)
                    on_case(_progressed(results, len(cases), time.perf_counter() - started))
        except KeyboardInterrupt:
            interrupted = True
    return RunResult(
        fingerprint=mark,
        cases=_in_order(cases, results),
        started=began,
        duration_s=time.perf_counter() - started,
        interrupted=interrupted,
        planned=len(cases),
        left_out=_left_out(suite, results),
    )


def _left_out(suite: Suite, results: Sequence[CaseResult]) -> tuple[str, ...]:
    run = {result.id for result in results}
    return tuple(case.id for case in suite.cases if case.id not in run)


def _results(
    cases: Sequence[Case], options: RunOptions, workshop: Workshop, files: Sequence[str], n: int
) -> Generator[CaseResult, None, None]:
    reasons = {case.id: skip_reason(case, options) for case in cases}
    yield from (skipped_case(case, reasons[case.id]) for case in cases if reasons[case.id])
    wanted = [case for case in cases if not reasons[case.id]]
    if n > 1 and len(wanted) > 1:
        yield from run_in_processes(files, wanted, options, n)
    else:
        yield from (run_case(case, options, workshop) for case in wanted)


def _in_order(cases: Sequence[Case], results: Sequence[CaseResult]) -> tuple[CaseResult, ...]:
    """Results as their cases stand in the suite, however they came in."""
    found = {result.id: result for result in results}
    return tuple(found[case.id] for case in cases if case.id in found)


def skip_reason(case: Case, options: RunOptions) -> str:
    """Why a case cannot be run with this model; "" if it can."""
    scripted = options.settings(case).model == SCRIPTED
    if case.needs == "scripted" and not scripted:
        return "needs --model scripted"
    if case.needs == "model" and scripted:
        return "needs a model"
    return ""


def _progressed(results: Sequence[CaseResult], total: int, spent_s: float) -> Progressed:
    done = len(results)
    return Progressed(results[-1], done, total, spent_s / done * (total - done))
