"""A run and a comparison as lines for a terminal. Knows no terminal but whether it has colours."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from chatbot.regression.compare import Comparison, FigureChange, Row
from chatbot.regression.results import CaseResult, Failure, RunResult, SampleResult, TurnRecord
from chatbot.regression.texts import excerpt

GREEN, YELLOW, RED, DIM, BOLD = "32", "33", "31", "2", "1"
_COLOURS = {"passed": GREEN, "flaky": YELLOW, "failed": RED, "error": RED, "skipped": DIM}
_INDENT = " " * 9
SHOWN_FAILURES = 5
MOST_TIMES = 100
"""A figure that began at next to nothing tells nothing as a percentage."""


class Paint:
    """Colours text, or leaves it as it is."""

    def __init__(self, colours: bool) -> None:
        self._colours = colours

    def __call__(self, text: str, colour: str) -> str:
        return f"\x1b[{colour}m{text}\x1b[0m" if self._colours else text


def case_lines(case: CaseResult, paint: Paint) -> Iterator[str]:
    """One line for a case that is well, a few for one that is not."""
    mark = paint(f"{case.status:<8}", _COLOURS[case.status])
    yield f"{mark} {case.id}{_share(case)}"
    if case.status == "skipped":
        yield _INDENT + case.reason
    if not case.failing:
        return
    yield f"{_INDENT}{paint(excerpt(case.why), DIM)}"
    sample = _telling(case)
    if sample.error:
        yield f"{_INDENT}{case.file}:{case.line}: {excerpt(sample.error, 400)}"
    for turn in sample.turns:
        yield from _turn_lines(case, turn, paint)


def _share(case: CaseResult) -> str:
    if case.samples <= 1:
        return ""
    interval = f"[{case.low:.0%}, {case.high:.0%}]"
    return f"  {case.passes}/{case.samples} {interval}, wanted {case.pass_rate:.0%}"


def _telling(case: CaseResult) -> SampleResult:
    """The sample that shows best why the case has its status."""
    return min(case.failing, key=lambda s: (not s.error, not s.breached, s.number))


def _turn_lines(case: CaseResult, turn: TurnRecord, paint: Paint) -> Iterator[str]:
    if not turn.failures:
        return
    yield f"{_INDENT}turn {turn.number}, {case.file}:{turn.line}: {excerpt(turn.question)!r}"
    yield f"{_INDENT}  reply: {excerpt(turn.reply)!r} ({turn.finish})"
    for failure in turn.failures[:SHOWN_FAILURES]:
        yield from _failure_lines(failure, paint)
    if more := len(turn.failures) - SHOWN_FAILURES:
        yield from [f"{_INDENT}  and {more} more"] if more > 0 else []
    if turn.trace:
        yield f"{_INDENT}  prompt: {prompt_pieces(turn.trace)}"


def _failure_lines(failure: Failure, paint: Paint) -> Iterator[str]:
    kind = "invariant " if failure.invariant else ""
    yield f"{_INDENT}  {paint('x', RED)} {kind}{failure.assertion}: {excerpt(failure.found, 300)}"
    if failure.layer:
        yield f"{_INDENT}    {paint(failure.layer, BOLD)}: {failure.where}"


def prompt_pieces(trace: dict[str, Any]) -> str:
    """ "system 60, 3 turns 220, question 20; 300 of 1536 tokens"."""
    counts: Counter[str] = Counter()
    tokens: Counter[str] = Counter()
    for segment in trace["segments"]:
        counts[segment["kind"]] += 1
        tokens[segment["kind"]] += segment["tokens"]
    pieces = [
        f"{kind} {tokens[kind]}" if counts[kind] == 1 else f"{counts[kind]} x {kind} {tokens[kind]}"
        for kind in counts
    ]
    left_out = f"; {len(trace['dropped'])} left out" if trace["dropped"] else ""
    total = f"{trace['prompt_tokens']} of {trace['limit_tokens']} tokens"
    return f"{', '.join(pieces)}; {total}{left_out}"


def summary_lines(run: RunResult, paint: Paint) -> Iterator[str]:
    """How many cases have which status, and what the run was of."""
    counts = [
        paint(f"{run.count(status)} {status}", _COLOURS[status])
        for status in ("passed", "flaky", "failed", "error", "skipped")
        if run.count(status) or status == "passed"
    ]
    yield f"{', '.join(counts)} in {run.duration_s:.1f} s ({run.fingerprint.model})"
    if run.interrupted:
        yield f"Interrupted: {len(run.cases)} of {run.planned} cases were run; these are kept."


def comparison_lines(comparison: Comparison, paint: Paint) -> Iterator[str]:
    """What differs from an earlier run."""
    for change, colour in (
        ("regressed", RED), ("worse", YELLOW), ("fixed", GREEN), ("new", BOLD), ("removed", DIM),
    ):  # fmt: skip
        for row in comparison.rows:
            if row.change == change:
                yield f"{paint(f'{change:<9}', colour)} {_row_text(row)}"
    same, not_run = len(comparison.of("same")), len(comparison.of("not run"))
    more = f", {not_run} not run" if not_run else ""
    yield f"the same: {same} {'case' if same == 1 else 'cases'}{more}"
    if not comparison.differences:
        yield "The fingerprints are the same."
    for difference in comparison.differences:
        yield f"differs: {difference.name}: {difference.before} -> {difference.after}"
    for figure in comparison.figures:
        yield f"{figure.name}: {figure_text(figure)}"


def _row_text(row: Row) -> str:
    arrow = f"{row.before} -> {row.after}" if row.before and row.after else row.before or row.after
    chance = f", p = {row.p:.3f}" if row.p is not None else ""
    note = "; it may be chance, more --samples tell" if row.change == "worse" else ""
    edited = "; the case itself was edited" if row.edited else ""
    reason = (
        f"\n{' ' * 10}{excerpt(row.reason, 300)}" if row.change in ("regressed", "worse") else ""
    )
    return f"{row.id}: {arrow}{chance}{note}{edited}{reason}"


def figure_text(figure: FigureChange) -> str:
    """ "0.31 s -> 0.35 s (+13%)"."""
    ratio = figure.ratio
    told = ratio is not None and ratio < MOST_TIMES
    change = f" ({round(ratio - 1, 2) + 0.0:+.0%})" if told and ratio is not None else ""
    before, after = (_amount(n, figure.unit) for n in (figure.before, figure.after))
    return f"{before} -> {after}{change}"


def _amount(number: float, unit: str) -> str:
    if unit == "bytes":
        return f"{number / (1 << 20):.1f} MiB"
    return f"{number:.3f} s" if unit == "s" else f"{number:.0f} {unit}"
