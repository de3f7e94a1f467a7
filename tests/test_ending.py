"""The end of the program: it waits for no thread, and breaks off none in the midst of its code."""

from __future__ import annotations

import subprocess
import sys

import pytest
from cli import ROOT

THREADS = """
import atexit, sys, threading, time
from concurrent.futures import ThreadPoolExecutor
from chatbot import cli

def run(arguments, console):
    atexit.register(lambda: print("put away"))
    threading.Thread(target=time.sleep, args=(600,), daemon=True).start()
    ThreadPoolExecutor(1).submit(time.sleep, 600)  # as a search that waits for its model
    print("result", end="")
    {ending}

cli.main = run
cli.entry()
"""


@pytest.mark.parametrize(
    ("ending", "code"),
    [("return 3", 3), ("raise SystemExit(143)", 143), ("raise SystemExit", 0)],
)
def test_the_end_waits_for_no_thread_and_loses_nothing(ending: str, code: int) -> None:
    command = [sys.executable, "-c", THREADS.format(ending=ending)]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert ended.returncode == code, ended.stderr
    assert ended.stdout.split() == ["resultput", "away"]
    assert ended.stderr == ""
