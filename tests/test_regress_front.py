"""The fronts of the suite: the pytest plugin, Ctrl-C, and many cases with flat memory."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from cli import ROOT
from regress_tools import FAILING, PASSING, SCRIPTED, load, write

from chatbot.regression.results import load_run
from chatbot.regression.runner import run_suite
from chatbot.regression.sampling import RunOptions

SLOW = """
  - id: slow
    why: It takes as long as it is let.
    turns:
      - {user: Go., reply: {behaviour: stall, text: a b c}}
"""
PLUGIN = ("-p", "chatbot.regression.pytest_plugin", "-p", "no:cacheprovider", "-q")


def run_pytest(folder: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    """Run pytest on suites in a folder that has nothing of this project."""
    return subprocess.run(
        [sys.executable, "-m", "pytest", *map(str, arguments)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_suites_run_under_pytest(tmp_path: Path) -> None:
    folder = tmp_path / "conversations"
    folder.mkdir()
    write(folder, PASSING + FAILING)
    write(tmp_path, "  nonsense: true\n", name="other.yaml")  # not asked for, so not read
    done = run_pytest(tmp_path, *PLUGIN[:2], "-q", "--junitxml", "out.xml", ".")
    assert "1 failed, 1 passed" in done.stdout, done.stdout + done.stderr
    for words in ("never stored", "never-told", "What nobody said", "prompt: system"):
        assert words in done.stdout
    assert "Traceback" not in done.stdout
    assert 'name="never-told"' in (tmp_path / "out.xml").read_text(encoding="utf-8")
    again = run_pytest(tmp_path, *PLUGIN[:2], "-q", "--lf", "-k", "never or quick", ".")
    assert "1 failed in" in again.stdout or "1 failed, 1 deselected" in again.stdout
    tagged = run_pytest(tmp_path, *PLUGIN, "--co", "-k", "quick", folder / "suite.yaml")
    assert "suite.yaml::knows" in tagged.stdout and "never-told" not in tagged.stdout


def test_a_bad_suite_is_a_sentence_under_pytest(tmp_path: Path) -> None:
    path = write(tmp_path, PASSING.replace("contains:", "contians:"))
    done = run_pytest(tmp_path, *PLUGIN, path)
    assert done.returncode != 0
    assert "did you mean contains?" in done.stdout
    assert "Traceback" not in done.stdout and "read_yaml" not in done.stdout


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
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert "Interrupted: " in out and "of 4 cases were run" in out
    assert "Traceback" not in err
    kept = load_run(saved)
    assert kept.interrupted and "knows" in [case.id for case in kept.cases]
    assert "slow" in kept.left_out
    assert "Interrupted" in (tmp_path / "run.html").read_text(encoding="utf-8")


@pytest.mark.slow
def test_five_hundred_cases_leave_memory_flat(tmp_path: Path) -> None:
    one = "  - id: c{n}\n    why: One of many.\n    turns:\n"
    one += "      - {{user: Code {n}., reply: ok {n}, assert: [contains: {wanted}]}}\n"
    cases = "".join(one.format(n=n, wanted=f"ok {n}" if n % 10 else "no") for n in range(500))
    suite = load(tmp_path, cases)
    process = psutil.Process()
    seen: list[int] = []
    result = run_suite(
        suite,
        suite.cases,
        RunOptions(SCRIPTED),
        on_case=lambda _: seen.append(process.memory_info().rss),
    )
    assert (result.count("passed"), result.count("failed")) == (450, 50)
    # The 50 failing conversations are kept; nothing else may add up.
    assert max(seen[100:]) - seen[100] < 16 << 20
    assert process.num_fds() < 100 and threads_end()


def threads_end() -> bool:
    """Whether samples have left no threads behind."""
    import threading

    end_s = time.monotonic() + 5
    while threading.active_count() > 10 and time.monotonic() < end_s:
        time.sleep(0.05)
    return threading.active_count() <= 10
