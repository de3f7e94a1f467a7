"""Do the shipped conversation suites catch the faults that they are meant to catch?

Run: python -m benchmarks.suite_mutations [--clean-runs 20] [--workers 2] [--only TEXT] [--json]

Breaks the program in the ways of `benchmarks.mutations`, one at a time, each in a process of its
own, and runs the suites on the scripted engine until a case fails. The unbroken program is run as
a whole --clean-runs times. Prints a table of mutation and the case that caught it; the last line
is JSON: {"mutations", "caught", "clean_runs", "clean_passed", "missed": [names]}.
"""

from __future__ import annotations

import argparse
import json
import logging
import multiprocessing
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from benchmarks.mutations import MUTATIONS
from chatbot.regression.runner import run_suite
from chatbot.regression.sampling import RunOptions
from chatbot.regression.suite import Suite, load_suites
from chatbot.settings import Settings

SUITES = Path(__file__).resolve().parent.parent / "tests" / "conversations"
ORDER = ("stability", "safety", "budget", "documents", "memory", "long")
"""The quick ones first: most faults are caught by them."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The first case that failed, "" if none did."""

    name: str
    case: str
    seconds: float


def main(argv: Sequence[str] | None = None) -> int:
    """0 if all runs of the unbroken program pass and at most one mutation is missed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--clean-runs", type=int, default=20)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--only", default="", help="mutations whose names hold this text")
    parser.add_argument("--json", action="store_true", help="print the JSON line only")
    options = parser.parse_args(argv)
    chosen = [n for n, one in enumerate(MUTATIONS) if options.only in one.name]
    jobs = [*chosen, *[-1] * options.clean_runs]
    outcomes = []
    # A new process for each, so that nothing of a broken program is left for the next.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(
        options.workers, mp_context=context, max_tasks_per_child=1
    ) as processes:
        for outcome in processes.map(run, jobs):
            outcomes.append(outcome)
            if not options.json:
                caught = outcome.case or "MISSED" if outcome.name else outcome.case or "passed"
                print(f"{outcome.name or 'unbroken':<56} {caught}  {outcome.seconds:.0f} s")
                sys.stdout.flush()
    broken = [o for o in outcomes if o.name]
    clean = [o for o in outcomes if not o.name]
    missed = [o.name for o in broken if not o.case]
    clean_passed = sum(not o.case for o in clean)
    figures = {
        "mutations": len(broken),
        "caught": len(broken) - len(missed),
        "clean_runs": len(clean),
        "clean_passed": clean_passed,
        "missed": missed,
    }
    print(json.dumps(figures))
    return int(len(missed) > 1 or clean_passed < len(clean))


def run(number: int) -> Outcome:
    """Break this process by one mutation (-1: none) and run the suites up to the first failure."""
    logging.disable(logging.CRITICAL)
    name = ""
    if number >= 0:
        MUTATIONS[number].apply()
        name = MUTATIONS[number].name
    begin = time.perf_counter()
    failed = ""
    for stem in ORDER:
        failed = _first_failure(load_suites([SUITES / f"{stem}.yaml"]))
        if failed:
            break
    return Outcome(name, failed, time.perf_counter() - begin)


def _first_failure(suite: Suite) -> str:
    options = RunOptions(Settings(model="scripted", embedding_model="none"))
    for case in suite.cases:
        result = run_suite(suite, [case], options)
        if not result.good:
            return next(one.id for one in result.cases if not one.good)
    return ""


if __name__ == "__main__":
    raise SystemExit(main())
