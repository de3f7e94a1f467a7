"""The fronts of the suite: the pytest plugin, Ctrl-C, and many cases with flat memory."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from multiprocessing.connection import Connection
from pathlib import Path

import psutil
import pytest
from cli import ROOT
from killable import child
from regress_tools import FAILING, PASSING, SCRIPTED, load, write

from chatbot.regression.results import load_run
from chatbot.regression.runner import run_suite
from chatbot.regression.sampling import RunOptions
from chatbot.regression.target import MEMORY_FOLDER

SLOW = """
  - id: slow
    why: It takes as long as it is let.
    turns:
      - {user: Go., reply: {behaviour: stall, text: a b c}}
"""
N_CASES, WARM = 250, 50
CASE_BYTES = 160 << 10
"""So much may add up for each case."""
PLUGIN = ("-p", "chatbot.regression.pytest_plugin", "-q")


def pytest_in(connection: Connection, folder: Path, arguments: list[str]) -> None:
    with (folder / "shown.txt").open("w") as shown:
        for descriptor in (1, 2):
            os.dup2(shown.fileno(), descriptor)
    os.chdir(folder)
    # The settings of whoever runs the tests do not count.
    os.environ["CHATBOT_MODEL"] = "none-such"
    pytest.main(arguments)
    sys.stdout.flush()
    connection.send("ended")


def run_pytest(folder: Path, *arguments: object) -> str:
    """What pytest shows of suites in a folder that has nothing of this project."""
    with child(pytest_in, folder, [str(argument) for argument in arguments]) as process:
        assert process.hear() == "ended"
    return (folder / "shown.txt").read_text(encoding="utf-8")


@pytest.mark.skipif(os.name == "nt", reason="forks")
def test_suites_run_under_pytest(tmp_path: Path) -> None:
    folder = tmp_path / "conversations"
    folder.mkdir()
    untagged = PASSING.replace("id: knows", "id: left").replace("quick", "other")
    write(folder, PASSING + FAILING + untagged)
    write(folder, PASSING.replace("contains:", "contians:"), name="bad.yaml")
    write(tmp_path, "  nonsense: true\n", name="other.yaml")  # not asked for, so not read
    chosen = ("--continue-on-collection-errors", "--junitxml", "out.xml", "-k", "never or quick")
    done = run_pytest(tmp_path, *PLUGIN, *chosen, ".")
    # -k finds names and tags; a bad suite is a sentence.
    assert "1 failed, 1 passed, 1 deselected, 1 error" in done, done
    for words in ("never stored", "never-told", "What nobody said", "prompt: system"):
        assert words in done
    assert "bad.yaml, line" in done and "did you mean contains?" in done
    assert "Traceback" not in done and "read_yaml" not in done
    assert 'name="never-told"' in (tmp_path / "out.xml").read_text(encoding="utf-8")
    again = run_pytest(tmp_path, *PLUGIN, "--lf", folder / "suite.yaml")
    assert "1 failed" in again and "passed" not in again


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
@pytest.mark.parametrize("workers", [1, 2])
def test_ctrl_c_ends_the_program_and_keeps_what_is_done(workers: int, tmp_path: Path) -> None:
    suite = write(
        tmp_path,
        PASSING + SLOW + FAILING.replace("never-told", "last") + SLOW.replace("slow", "slow-2"),
    )
    saved = tmp_path / "run.json"
    process = subprocess.Popen(
        [sys.executable, "-m", "chatbot", "regress", str(suite), "--model", "scripted",
         "--workers", str(workers), "--save", str(saved), "--html", str(tmp_path / "run.html")],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    first = process.stdout.readline()
    assert "knows" in first or "last" in first
    time.sleep(0.3)
    children = psutil.Process(process.pid).children()
    pids = [process.pid, *(child.pid for child in children)]
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert "Interrupted: " in out and "of 4 cases were run" in out
    assert "Traceback" not in err
    kept = load_run(saved)
    assert kept.interrupted and "knows" in [case.id for case in kept.cases]
    assert "slow" in kept.left_out
    assert "Interrupted" in (tmp_path / "run.html").read_text(encoding="utf-8")
    folders = [Path(tempfile.gettempdir()), MEMORY_FOLDER]
    assert not [left for f in folders for pid in pids for left in f.glob(f"*-regress-{pid}-*")]


@pytest.mark.long
@pytest.mark.slow
def test_many_cases_leave_memory_flat(tmp_path: Path) -> None:
    one = "  - id: c{n}\n    why: One of many.\n    turns:\n"
    one += "      - {{user: Code {n}., reply: ok {n}, assert: [contains: {wanted}]}}\n"
    cases = "".join(one.format(n=n, wanted=f"ok {n}" if n % 10 else "no") for n in range(N_CASES))
    suite = load(tmp_path, cases)
    process = psutil.Process()
    threads = threading.active_count()
    seen: list[int] = []
    result = run_suite(
        suite,
        suite.cases,
        RunOptions(SCRIPTED),
        on_case=lambda _: seen.append(process.memory_info().rss),
    )
    assert (result.count("passed"), result.count("failed")) == (N_CASES * 9 // 10, N_CASES // 10)
    # The failing conversations are kept; nothing else may add up. The process has run other
    # tests, whose freed memory comes and goes.
    assert max(seen[WARM:]) - seen[WARM] < (N_CASES - WARM) * CASE_BYTES
    assert process.num_fds() < 100 and threads_end(threads + 5)


def threads_end(most: int) -> bool:
    """Whether samples have left no threads behind, beside those of other tests."""
    end_s = time.monotonic() + 5
    while threading.active_count() > most and time.monotonic() < end_s:
        time.sleep(0.05)
    return threading.active_count() <= most
