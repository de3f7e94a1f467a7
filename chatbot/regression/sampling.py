"""One case with all its samples, each in a program of its own. Knows no other case."""

from __future__ import annotations

import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass

from chatbot.errors import ChatbotError
from chatbot.regression.deadline import Deadline, TimeLimitError
from chatbot.regression.drive import Driver
from chatbot.regression.judge import (
    AssertionTroubleError,
    failed_reply,
    judge_case,
    judge_turn,
    metrics_of,
)
from chatbot.regression.results import CaseResult, SampleResult, TurnRecord
from chatbot.regression.script import SuiteScript
from chatbot.regression.suite import Case
from chatbot.regression.suite_settings import merged_settings
from chatbot.regression.target import Workshop
from chatbot.settings import Settings
from retrieval.types import RetrievalError

GRACE_S = 5.0
"""A sample that does not end so long after its time is up is left behind."""
POLL_S = 0.1


@dataclass(frozen=True, slots=True)
class RunOptions:
    """What holds for a whole run."""

    base: Settings
    overrides: tuple[tuple[str, str], ...] = ()
    """Settings over those of the suite's defaults, under those of its cases."""
    samples: int | None = None

    def settings(self, case: Case, seed: int | None = None) -> Settings:
        """The settings of a sample. Raises SettingsError when they cannot go together."""
        drawn = {} if seed is None or "seed" in case.settings else {"seed": seed}
        return merged_settings(
            self.base, case.default_settings, drawn, dict(self.overrides), case.settings
        )


@dataclass
class _Made:
    """What a sample has come to so far; the thread that makes it may be left behind."""

    turns: list[TurnRecord]
    error: str = ""
    done: bool = False


def run_case(case: Case, options: RunOptions, workshop: Workshop) -> CaseResult:
    """All samples of a case, one after the other."""
    started = time.perf_counter()
    samples: list[SampleResult] = []
    turns: list[TurnRecord] = []
    for number in range(1, (options.samples or case.samples) + 1):
        sample, made = _sample(case, options, workshop, number)
        samples.append(sample)
        turns += made
    duration_s = time.perf_counter() - started
    return judge_case(
        case,
        samples,
        metrics=metrics_of(turns),
        duration_s=duration_s,
        temperature=options.settings(case).temperature,
    )


def _sample(
    case: Case, options: RunOptions, workshop: Workshop, number: int
) -> tuple[SampleResult, list[TurnRecord]]:
    started = time.perf_counter()
    made = _Made([])
    with Deadline(case.timeout_s) as deadline:
        _in_thread(lambda: _converse(case, options, workshop, number, made, deadline), deadline)
    if not made.done and not made.error:
        made.error = f"it did not end within {GRACE_S:g} s after its {case.timeout_s:g} s"
    # A copy: a thread that was left behind may still write.
    turns, error = list(made.turns), made.error
    breached = any(f.invariant for turn in turns for f in turn.failures)
    passed = not error and not any(turn.failures for turn in turns)
    duration_s = time.perf_counter() - started
    kept = () if passed else tuple(turns)
    return SampleResult(number, passed, breached, error, duration_s, kept), turns


def _in_thread(work: Callable[[], None], deadline: Deadline) -> None:
    """Do the work where it can be left behind, and so that Ctrl-C is heard at once."""
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    end_s = time.monotonic() + deadline.limit_s + GRACE_S
    try:
        while thread.is_alive() and time.monotonic() < end_s:
            thread.join(POLL_S)
    except KeyboardInterrupt:
        deadline.ring_now()
        thread.join(GRACE_S)
        raise


def _converse(
    case: Case,
    options: RunOptions,
    workshop: Workshop,
    number: int,
    made: _Made,
    deadline: Deadline,
) -> None:
    first = case.seed if options.base.seed is None else options.base.seed
    seed = first + number - 1
    try:
        script = SuiteScript(case.summariser, seed)
        settings = options.settings(case, seed)
        target = workshop.target(settings, case.documents, script)
        try:
            for step, question, seen in Driver(case, target, script, deadline).run():
                made.turns.append(judge_turn(case, step, question, seen, len(made.turns) + 1))
                made.error = made.error or failed_reply(step, seen)
        finally:
            target.close()
    except (TimeLimitError, AssertionTroubleError, ChatbotError, RetrievalError) as error:
        made.error = f"after {_turns(made)}: {error}"
    except Exception as error:
        # A fault of the program under test is a result of the test, with its place.
        made.error = f"after {_turns(made)}: {type(error).__name__}: {error} ({_place(error)})"
    finally:
        made.done = True


def _turns(made: _Made) -> str:
    return f"{len(made.turns)} turns"


def _place(error: Exception) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    return f"{frames[-1].filename.rpartition('/')[2]}:{frames[-1].lineno}" if frames else "?"
