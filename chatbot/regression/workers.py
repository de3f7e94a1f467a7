"""Cases spread over processes; each has its own program. Knows no report."""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from pathlib import Path

from chatbot.regression.judge import judge_case
from chatbot.regression.results import CaseResult, Metrics, SampleResult
from chatbot.regression.sampling import GRACE_S, RunOptions, run_case
from chatbot.regression.suite import Case, load_suites
from chatbot.regression.target import Workshop

_POLL_S = 0.2
_END_S = GRACE_S + 5.0
"""So long may a worker take to leave its case and remove its folder."""


@dataclass
class _Worker:
    process: SpawnProcess
    pipe: Connection
    case: Case | None = None


def run_in_processes(
    files: Sequence[str], cases: Sequence[Case], options: RunOptions, n_workers: int
) -> Iterator[CaseResult]:
    """The results as they come. Closing the iterator ends the processes."""
    waiting = list(reversed(cases))
    workers = [_start(files, options) for _ in range(min(n_workers, len(cases)))]
    try:
        for worker in workers:
            _give(worker, waiting)
        while busy := [worker for worker in workers if worker.case is not None]:
            ready = wait([worker.pipe for worker in busy], _POLL_S)
            for worker in busy:
                if worker.pipe not in ready:
                    continue
                yield _taken(worker)
                if not worker.process.is_alive() and waiting:
                    workers.remove(worker)
                    worker = _start(files, options)
                    workers.append(worker)
                _give(worker, waiting)
    finally:
        for worker in workers:
            _end(worker)


def _start(files: Sequence[str], options: RunOptions) -> _Worker:
    context = multiprocessing.get_context("spawn")
    mine, theirs = context.Pipe()
    process = context.Process(target=_work, args=(theirs, list(files), options), daemon=True)
    process.start()
    theirs.close()
    return _Worker(process, mine)


def _give(worker: _Worker, waiting: list[Case]) -> None:
    worker.case = waiting.pop() if waiting else None
    with suppress(BrokenPipeError):  # it has died; its end of the pipe will say so
        worker.pipe.send(worker.case.id if worker.case else None)


def _taken(worker: _Worker) -> CaseResult:
    assert worker.case is not None, "only busy workers are asked"
    try:
        result: CaseResult = worker.pipe.recv()
    except (EOFError, ConnectionResetError):
        worker.process.join(_END_S)
        sentence = f"the process of the case ended with code {worker.process.exitcode}"
        lost = SampleResult(1, passed=False, error=sentence)
        result = judge_case(worker.case, [lost], metrics=Metrics(), duration_s=0.0)
    return result


def _end(worker: _Worker) -> None:
    worker.pipe.close()
    if worker.case is not None:
        worker.process.terminate()
    worker.process.join(_END_S)
    if worker.process.is_alive():
        worker.process.kill()


def _work(pipe: Connection, files: list[str], options: RunOptions) -> None:
    """A worker's life: case ids in, results out, until there are no more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever started it ends it
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # and it must remove its folder
    cases = {case.id: case for case in load_suites([Path(file) for file in files]).cases}
    # The outer one takes what comes while the folder is being removed.
    with suppress(KeyboardInterrupt), Workshop() as workshop, suppress(EOFError, BrokenPipeError):
        while (case_id := pipe.recv()) is not None:
            pipe.send(run_case(cases[case_id], options, workshop))
