"""`regress`: suites of conversations, run and compared with an earlier run."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

from chatbot.commands.common import add_json
from chatbot.console import Console
from chatbot.errors import InputError
from chatbot.records import to_plain
from chatbot.regression.compare import Change, Comparison, compare
from chatbot.regression.report_text import Paint, case_lines, comparison_lines, summary_lines
from chatbot.regression.results import RunResult, load_run, save_run
from chatbot.regression.runner import Progressed, Selection, run_suite, select
from chatbot.regression.sampling import RunOptions
from chatbot.regression.suite import load_suites
from chatbot.regression.suite_settings import parse_assignment
from chatbot.regression.target import SCRIPTED
from chatbot.settings import Settings


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "what",
        nargs="+",
        metavar="SUITE",
        help="suite files; or: compare A.json B.json; matrix SUITE --set NAME=VALUE,VALUE...; "
        "record CONVERSATION (a file, or the id of a chat), which writes a case",
    )
    files = {
        "--baseline": "an earlier --save: say what is new, fixed, regressed",
        "--save": "keep this run as a baseline",
        "--html": "write a report for the browser, in one file",
        "--junit": "write JUnit XML",
        "--filter-failing": "run only what failed in this earlier --save",
    }
    for flag, text in files.items():
        parser.add_argument(flag, type=Path, metavar="FILE", help=text)
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="record: where to write")
    parser.add_argument("--tags", metavar="TAG,TAG", help="run only cases with any of these")
    parser.add_argument("--samples", type=int, metavar="N", help="conversations per case")
    parser.add_argument(
        "--workers", type=int, default=1, metavar="N", help="processes (with a local model: 1)"
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a setting over those of the suites; matrix takes several values",
    )
    add_json(parser)


def run(arguments: argparse.Namespace, settings: Settings, console: Console) -> int:
    """0: all is well, 1: a case failed or regressed, 2: a suite or an argument is wrong."""
    word, rest = arguments.what[0], arguments.what[1:]
    if word == "compare":
        return _compare(arguments, rest, console)
    return _run(arguments, settings, console)


def _compare(arguments: argparse.Namespace, files: list[str], console: Console) -> int:
    if len(files) != 2:
        raise InputError("compare takes two runs, such as: regress compare A.json B.json")
    before, after = (load_run(Path(file)) for file in files)
    comparison = compare(before, after)
    if arguments.json:
        console.json(comparison_record(comparison))
    else:
        _print(comparison_lines(comparison, _paint(console)), console)
    return int(comparison.regressed)


@dataclass(frozen=True, slots=True)
class _Wishes:
    """The arguments, checked before anything is run."""

    options: RunOptions
    baseline: RunResult | None
    earlier: RunResult | None
    tags: tuple[str, ...]


def _wishes(arguments: argparse.Namespace, settings: Settings) -> _Wishes:
    if arguments.samples is not None and not 1 <= arguments.samples <= 1000:
        raise InputError(f"--samples must be a number from 1 to 1000, not {arguments.samples}.")
    if arguments.workers < 1:
        raise InputError(f"--workers must be at least 1, not {arguments.workers}.")
    overrides = []
    for text in arguments.set:
        name, values = parse_assignment(text)
        if len(values) > 1:
            raise InputError(f"--set {text} has several values; matrix takes them.")
        overrides.append((name, values[0]))
    baseline, earlier = (
        load_run(path) if path else None for path in (arguments.baseline, arguments.filter_failing)
    )
    tags = tuple(tag for tag in (arguments.tags or "").split(",") if tag)
    options = RunOptions(base_settings(settings), tuple(overrides), arguments.samples)
    return _Wishes(options, baseline, earlier, tags)


def base_settings(settings: Settings) -> Settings:
    """A scripted model needs no embedding model, unless one is asked for."""
    if settings.model == SCRIPTED and settings.embedding_model == "embedded":
        return settings.model_copy(update={"embedding_model": "none"})
    return settings


def _run(arguments: argparse.Namespace, settings: Settings, console: Console) -> int:
    wishes = _wishes(arguments, settings)
    suite = load_suites([Path(name) for name in arguments.what])
    ids = None
    if wishes.earlier is not None:
        ids = frozenset(case.id for case in wishes.earlier.cases if not case.good)
        if not ids:
            console.note(f"No case failed in {arguments.filter_failing}; there is nothing to run.")
            return 0
    cases = select(suite, Selection(wishes.tags, ids))
    paint = _paint(console)

    def on_case(progressed: Progressed) -> None:
        if not arguments.json:
            _print(case_lines(progressed.result, paint), console)
        console.progress(
            f"{progressed.done} of {progressed.total} cases, about {progressed.left_s:.0f} s left"
        )

    result = run_suite(
        suite, cases, wishes.options, on_case=on_case, progress=console.model_progress
    )
    comparison = compare(wishes.baseline, result) if wishes.baseline else None
    _report(arguments, result, comparison, console)
    if result.interrupted or not result.good:
        return 1
    return int(comparison is not None and comparison.regressed)


def _report(
    arguments: argparse.Namespace,
    result: RunResult,
    comparison: Comparison | None,
    console: Console,
) -> None:
    paint = _paint(console)
    if arguments.save:
        save_run(result, arguments.save)
    if arguments.json:
        record: dict[str, Any] = to_plain(result)
        if comparison is not None:
            record["comparison"] = comparison_record(comparison)
        console.json(record)
        return
    if comparison is not None:
        _print(comparison_lines(comparison, paint), console)
    _print(summary_lines(result, paint), console)


def comparison_record(comparison: Comparison) -> dict[str, Any]:
    """A comparison as its JSON object."""
    record: dict[str, Any] = to_plain(comparison)
    for change in get_args(Change):
        record[change.replace(" ", "_")] = [row.id for row in comparison.of(change)]
    return record


def _print(lines: Any, console: Console) -> None:
    for line in lines:
        console.result(line)


def _paint(console: Console) -> Paint:
    return Paint(console.out.isatty())
