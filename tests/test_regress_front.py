"""The fronts of the suite: the pytest plugin, Ctrl-C, and many cases with flat memory."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import psutil
import pytest
from cli import ROOT
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
PLUGIN = ("-p", "chatbot.regression.pytest_plugin", "-q")


def run_pytest(folder: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    """Run pytest on suites in a folder that has nothing of this project."""
    return subprocess.run(
        [sys.executable, "-m", "pytest", *map(str, arguments)],
        cwd=folder,
        # The settings of whoever runs the tests do not count.
        env={**os.environ, "PYTHONPATH": str(ROOT), "CHATBOT_MODEL": "none-such"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


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
    assert "1 failed, 1 passed, 1 deselected, 1 error" in done.stdout, done.stdout + done.stderr
    for words in ("never stored", "never-told", "What nobody said", "prompt: system"):
        assert words in done.stdout
    assert "bad.yaml, line" in done.stdout and "did you mean contains?" in done.stdout
    assert "Traceback" not in done.stdout and "read_yaml" not in done.stdout
    assert 'name="never-told"' in (tmp_path / "out.xml").read_text(encoding="utf-8")
    again = run_pytest(tmp_path, *PLUGIN, "--lf", folder / "suite.yaml")
    assert "1 failed" in again.stdout and "passed" not in again.stdout


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


@pytest.mark.slow
def test_five_hundred_cases_leave_memory_flat(tmp_path: Path) -> None:
    one = "  - id: c{n}\n    why: One of many.\n    turns:\n"
    one += "      - {{user: Code {n}., reply: ok {n}, assert: [contains: {wanted}]}}\n"
    cases = "".join(one.format(n=n, wanted=f"ok {n}" if n % 10 else "no") for n in range(500))
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
    assert (result.count("passed"), result.count("failed")) == (450, 50)
    # The 50 failing conversations are kept; nothing else may add up. The process has run other
    # tests, whose freed memory comes and goes.
    assert max(seen[100:]) - seen[100] < 64 << 20
    assert process.num_fds() < 100 and threads_end(threads + 5)


def threads_end(most: int) -> bool:
    """Whether samples have left no threads behind, beside those of other tests."""
    end_s = time.monotonic() + 5
    while threading.active_count() > most and time.monotonic() < end_s:
        time.sleep(0.05)
    return threading.active_count() <= most
