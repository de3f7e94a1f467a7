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
from dataclasses import dataclass
from pathlib import Path

import httpx

from chatbot.engine.embedded import demo_gguf
from chatbot.engine.models import locate

START_S = 240


class MissingServerError(Exception):
    """A server that is not installed; says what to install."""


@dataclass(frozen=True, slots=True)
class Start:
    """How a server is started, and what the program is told about it."""

    name: str
    command: tuple[str, ...]
    tokenizer: str | None = None
    """What counts here, where it is not found by the model's name."""


def transformers_start(model_cache: Path) -> Start:
    """`transformers serve` with the demo model in the program's own form."""
    model = str(demo_model(model_cache))
    program = str(Path(sys.executable).with_name("transformers"))
    return Start("transformers serve", (program, "serve", model, "--device", "cpu"))


def llama_cpp_start(model_cache: Path, *, context_tokens: int = 2048, tokenizer: bool) -> Start:
    """llama-cpp-python's server with the demo model's own file. Raises MissingServerError.

    Without `tokenizer`, the server itself counts and writes its chat template.
    """
    if any(importlib.util.find_spec(name) is None for name in ("llama_cpp", "starlette_context")):
        raise MissingServerError(
            "needs llama-cpp-python[server], which is compiled for minutes: pip install -r "
            "benchmarks/requirements-peers.txt"
        )
    command = (sys.executable, "-m", "llama_cpp.server", "--model", str(demo_gguf(model_cache)))
    options = ("--model_alias", "smollm2", "--n_ctx", str(context_tokens), "--n_threads", "1")
    name = "llama-cpp-python, tokenizer here" if tokenizer else "llama-cpp-python, messages"
    return Start(name, (*command, *options), "demo" if tokenizer else None)


def demo_model(model_cache: Path) -> Path:
    """The demo model's folder, which is made if it is not there."""
    return locate("demo", cache_dir=model_cache).folder


@contextmanager
def started(start: Start, work: Path, port: int = 0) -> Iterator[RealServer]:
    """The server as a process of its own, until the block ends."""
    server = RealServer(start, work, port or free_port())
    server.start()
    try:
        yield server
    finally:
        server.kill()


class RealServer:
    """A process that can be killed and started again at the same address."""

    def __init__(self, start: Start, work: Path, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}/v1"
        self._command = [*start.command, "--host", "127.0.0.1", "--port", str(port)]
        self._work = work

    def start(self) -> None:
        """Until it answers. Raises RuntimeError with the end of its log when it does not."""
        # No hub and one thread: the machine is shared with other work.
        environment = {**os.environ, "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
        log = self._work / "server.log"
        with log.open("ab") as out:
            self._process = subprocess.Popen(
                self._command, env=environment, cwd=self._work, stdout=out, stderr=out
            )
        until = time.monotonic() + START_S
        while time.monotonic() < until and self._process.poll() is None:
            try:
                if httpx.get(f"{self.url}/models", timeout=5).status_code == 200:
                    return
            except httpx.HTTPError:
                time.sleep(0.2)
        self.kill()
        end = log.read_text(encoding="utf-8", errors="replace")[-2000:]
        raise RuntimeError(f"the server did not start: {' '.join(self._command)}\n{end}")

    def kill(self) -> None:
        """At once, as a crash would."""
        self._process.kill()
        self._process.wait()


def free_port() -> int:
    """A port that nobody uses now."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])
