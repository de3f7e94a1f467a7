"""`regress`: suites of conversations, run and compared with an earlier run."""

from __future__ import annotations

import argparse
from pathlib import Path

from chatbot.commands.common import add_json
from chatbot.commands.regress_run import run_cells, run_suites
from chatbot.commands.regress_tools import compare_files, record_case
from chatbot.console import Console
from chatbot.errors import InputError
from chatbot.settings import Settings


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "what",
        nargs="+",
        metavar="SUITE",
        help="suite files; or: compare A.json B.json; matrix SUITE --set NAME=VALUE,VALUE...; "
        "record CONVERSATION (a file, or the id or title of a chat), which writes a case",
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


_TAKEN_BY = {
    "compare": (),
    "record": ("output",),
    "matrix": ("filter_failing", "tags", "samples", "workers", "set"),
}
_ALL = (
    "baseline", "save", "html", "junit", "filter_failing", "output",
    "tags", "samples", "workers", "set",
)  # fmt: skip


def _refuse_unused(word: str, arguments: argparse.Namespace) -> None:
    """A report that is asked for and never written would be missed too late."""
    taken = _TAKEN_BY.get(word, tuple(name for name in _ALL if name != "output"))
    for name in _ALL:
        if name not in taken and getattr(arguments, name) not in (None, [], 1):
            flag = "-o" if name == "output" else "--" + name.replace("_", "-")
            what = f"regress {word}" if word in _TAKEN_BY else "a run of suites"
            raise InputError(f"{what} takes no {flag}; leave it out.")


def run(arguments: argparse.Namespace, settings: Settings, console: Console) -> int:
    """0: all is well, 1: a case failed or regressed, 2: a suite or an argument is wrong."""
    word, rest = arguments.what[0], arguments.what[1:]
    _refuse_unused(word, arguments)
    if word == "compare":
        return compare_files(rest, console, as_json=arguments.json)
    if word == "record":
        return record_case(rest, arguments.output, settings, console)
    if word == "matrix":
        arguments.what = rest
        return run_cells(arguments, settings, console)
    return run_suites(arguments, settings, console)
