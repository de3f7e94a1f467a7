"""The command line as a program, with the real models."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from cli import ROOT, program


@pytest.mark.model
@pytest.mark.slow
def test_a_question_to_the_demo_model_leaves_only_json_on_stdout(
    folder: Path, model_cache: Path
) -> None:
    outcome = program(
        *("ask", "When was the tower built?", "--documents", folder / "tower.txt", "--json"),
        *("--cache-dir", model_cache, "--reply-tokens", 6),
    )
    assert outcome.code == 0, outcome.err
    (result,) = outcome.lines
    assert result["answer"] and result["best_sentence"]["document"] == "tower.txt"
    assert outcome.err.startswith("Reading the documents…\n")
    known = (
        "Reading the documents",
        "The model is loading",
        "Reading the weights",
        "The documents are in",
    )
    assert all(line.startswith(known) for line in outcome.err.splitlines()), outcome.err


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_serve_opens_the_page_and_ends_tidily(tmp_path: Path, model_cache: Path) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, str(ROOT / "app.py"), "--port", str(port)]
    command += ["--data-dir", str(tmp_path), "--cache-dir", str(model_cache)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        assert process.stdout is not None
        shown = []
        for line in process.stdout:  # ends with the process, at the latest
            shown.append(line.decode())
            if f"http://127.0.0.1:{port}/" in shown[-1]:
                break
        reached = listens(port)
        process.send_signal(signal.SIGINT)
        rest = process.communicate(timeout=60)[0].decode()
    assert reached, shown
    assert "Traceback" not in rest
    assert process.returncode in (0, 130)
