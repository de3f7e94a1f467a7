"""Servers of other projects with the embedded demo model, started for tests and measurements."""

from __future__ import annotations

import importlib.util
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

START_S = 240
DEMO = Path("models") / "SmolLM2-135M-Instruct"
DEMO_FILE = Path("models") / "SmolLM2-135M-Instruct-Q4_1" / "SmolLM2-135M-Instruct.Q4_1.gguf"


def transformers_server(model_cache: Path, work: Path) -> Iterator[str]:
    """`transformers serve` with the demo model; its address."""
    model = str(model_cache / DEMO)
    command = [str(Path(sys.executable).with_name("transformers")), "serve", model]
    with started([*command, "--device", "cpu"], work) as url:
        yield url


def llama_cpp_server(model_cache: Path, work: Path) -> Iterator[str]:
    """llama-cpp-python's server with the demo model's own file; skips where it is not installed."""
    import pytest

    if importlib.util.find_spec("llama_cpp") is None:
        pytest.skip("needs llama-cpp-python[server], which compiles for minutes")
    from chatbot.engine.embedded import demo_gguf

    file = str(demo_gguf(model_cache))
    command = [sys.executable, "-m", "llama_cpp.server", "--model", file]
    options = ["--model_alias", "smollm2", "--n_ctx", "2048", "--n_threads", "1"]
    with started([*command, *options], work) as url:
        yield url


@contextmanager
def started(command: list[str], work: Path, port: int = 0) -> Iterator[str]:
    """A server as a process of its own, until the block ends."""
    port = port or free_port()
    # No hub and one thread: the machine is shared with other tests.
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    with (work / "server.log").open("ab") as log:
        process = subprocess.Popen(
            [*command, "--host", "127.0.0.1", "--port", str(port)],
            env=environment, cwd=work, stdout=log, stderr=log,
        )  # fmt: skip
    try:
        url = f"http://127.0.0.1:{port}/v1"
        _wait(process, url, work / "server.log")
        yield url
    finally:
        process.kill()
        process.wait()


def free_port() -> int:
    """A port that nobody uses now."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def _wait(process: subprocess.Popen[bytes], url: str, log: Path) -> None:
    until = time.monotonic() + START_S
    while time.monotonic() < until:
        if process.poll() is not None:
            break
        try:
            if httpx.get(f"{url}/models", timeout=5).status_code == 200:
                return
        except httpx.HTTPError:
            time.sleep(0.2)
    end = log.read_text(encoding="utf-8", errors="replace")[-2000:]
    raise RuntimeError(f"the server did not start: {command_of(process)}\n{end}")


def command_of(process: subprocess.Popen[bytes]) -> str:
    return " ".join(map(str, process.args)) if isinstance(process.args, list) else ""
