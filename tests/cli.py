"""Runs the command line for tests: inside this process with chosen parts, or as a program."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from chatbot.cli import main
from chatbot.console import Console
from chatbot.engine.scripted import Script, ScriptedEngine

ROOT = Path(__file__).resolve().parent.parent
KEYWORDS_ONLY = ("--embedding-model", "none")
PROGRAM_S = 120
SEGMENT_KEYS = {"kind", "tokens", "text"}

UseScript = Callable[[Script], ScriptedEngine]
"""Lets commands use a scripted engine; the fixture `scripted` is one."""


@dataclass(frozen=True)
class Outcome:
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[Any]:
        """Stdout as JSON lines."""
        return [json.loads(line) for line in self.out.splitlines()]


def inside(*arguments: object) -> Outcome:
    """Run a command in this process."""
    out, err = io.StringIO(), io.StringIO()
    code = main([str(argument) for argument in arguments], Console(out, err))
    return Outcome(code, out.getvalue(), err.getvalue())


def program(
    *arguments: object,
    module: Sequence[str] = ("-m", "chatbot"),
    stdin: str = "",
    **environment: str,
) -> Outcome:
    """Run a command as a program of its own."""
    process = subprocess.Popen(
        [sys.executable, *module, *(str(argument) for argument in arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONFAULTHANDLER": "1", **environment},
    )
    try:
        out, err = process.communicate(stdin.encode(), timeout=PROGRAM_S)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGABRT)  # makes it say where it hangs
        out, err = process.communicate(timeout=PROGRAM_S)
    return Outcome(process.returncode, out.decode("utf-8"), err.decode("utf-8"))


def assert_trace(trace: dict[str, Any], question: str, limit: int) -> None:
    """The shape and the sums of the contract."""
    assert trace["question"] == question
    assert trace["prompt_tokens"] <= trace["limit_tokens"] == limit
    assert trace["reply_tokens"] > 0 and trace["reused_tokens"] >= 0
    assert sum(s["tokens"] for s in trace["segments"]) == trace["prompt_tokens"]
    assert all(set(s) >= SEGMENT_KEYS for s in trace["segments"])
    assert all(set(d) >= SEGMENT_KEYS | {"reason"} for d in trace["dropped"])
    assert not [v for s in trace["segments"] for v in s.values() if v is None or v == []]
    kinds = [s["kind"] for s in trace["segments"]]
    assert kinds[0] == "system" and kinds[-1] == "question"
