"""The parts that `benchmarks.together` runs: how each is started, and what is written down."""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from benchmarks.postgres_server import PostgresServer, own_server
from benchmarks.real_servers import (
    MissingServerError,
    RealServer,
    Start,
    free_port,
    llama_cpp_start,
    started,
    transformers_start,
)
from chatbot.settings import default_cache_dir
from tests.milvus_server import milvus_server

ROOT = Path(__file__).resolve().parent.parent
START_S, ANSWER_S = 300.0, 300.0


@dataclass
class Log:
    """What happened, as lines of Markdown."""

    lines: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    _begun: float = field(default_factory=time.monotonic)

    def step(self, title: str) -> None:
        self.say(f"\n## {title} ({time.monotonic() - self._begun:.0f} s)\n")

    def say(self, text: str) -> None:
        self.lines.append(text)
        print(text, flush=True)

    def block(self, text: str) -> None:
        self.say("\n".join(["", *(f"    {line}" for line in text.splitlines()), ""]))

    def check(self, holds: bool, what: str) -> None:
        self.say(f"- {'yes' if holds else 'NO'}: {what}")
        if not holds:
            self.faults.append(what)


@dataclass(frozen=True)
class Team:
    """The parts, and how they are reached."""

    postgres: PostgresServer
    schema: str
    engine: RealServer
    replicas: tuple[Replica, Replica]
    entrance: str
    key: str
    token: str

    def ask(self, question: str, *, at: str = "", **metadata: str) -> dict[str, Any]:
        """One whole reply, through the entrance unless a replica is named."""
        answer = httpx.post(
            f"{at or self.entrance}/v1/chat/completions",
            json={
                "model": "default",
                "max_tokens": 40,
                "messages": [{"role": "user", "content": question}],
                "metadata": {"conversation_id": "house", **metadata},
            },
            headers={"authorization": f"Bearer {self.key}"},
            timeout=ANSWER_S,
        )
        found: dict[str, Any] = {"status": answer.status_code, **answer.json()}
        return found

    def stored(self) -> list[str]:
        """The turns of the conversation in their order, as the database has them."""
        rows = self.postgres.run(
            f"SELECT t.position || ' ' || t.finish FROM {self.schema}.turns t "
            f"WHERE t.conversation_id = 'house' ORDER BY t.position"
        )
        return rows.splitlines()


class Replica:
    """One process of page and API."""

    def __init__(self, folder: Path, environment: dict[str, str], number: int) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        with (folder / f"replica{number}.log").open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "chatbot", "serve", "--port", str(self.port)],
                cwd=ROOT,
                env=environment,
                stdout=log,
                stderr=log,
            )

    def wait(self) -> dict[str, Any]:
        """Until it is ready; what it says then. Raises TimeoutError."""
        ends = time.monotonic() + START_S
        while time.monotonic() < ends and self._process.poll() is None:
            try:
                answer = httpx.get(f"{self.url}/readyz", timeout=10)
                if answer.status_code == 200:
                    found: dict[str, Any] = answer.json()
                    return found
            except httpx.HTTPError:
                pass
            time.sleep(0.5)
        raise TimeoutError("a replica did not become ready")

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def end(self) -> int:
        """As a container is stopped; its exit status."""
        self._process.terminate()
        try:
            return self._process.wait(60)
        except subprocess.TimeoutExpired:
            self.kill()
            return -1


def engine_start(cache: Path) -> Start:
    try:
        return llama_cpp_start(cache, tokenizer=True)
    except MissingServerError:
        return transformers_start(cache)


@contextmanager
def team(folder: Path, log: Log) -> Iterator[Team]:
    """All parts, started one after the other; ended in the other order."""
    cache = Path(os.environ.get("CHATBOT_CACHE_DIR") or default_cache_dir())
    with ExitStack() as stack:
        log.step("PostgreSQL, Milvus and the model server are started")
        postgres = stack.enter_context(own_server())
        url = postgres.fresh()
        milvus = stack.enter_context(milvus_server(folder / "milvus"))
        start = engine_start(cache)
        engine = stack.enter_context(started(start, folder))
        served = httpx.get(f"{engine.url}/models").json()["data"]
        model = served[0]["id"]
        log.say(f"- {postgres.run('SELECT version()').split(' on ')[0]}")
        log.say(f"- milvus-lite at a port; {start.name} with `{Path(model).name}`")
        token = secrets.token_hex(16)
        environment = {
            **os.environ,
            "HF_HUB_OFFLINE": "1",
            "OMP_NUM_THREADS": "1",
            "CHATBOT_DATA_DIR": str(folder / "data"),
            "CHATBOT_MODEL": model,
            "CHATBOT_ENGINE_URL": engine.url,
            "CHATBOT_DATABASE_URL": url,
            "CHATBOT_VECTOR_URL": milvus.url,
            "CHATBOT_AUTH": str(folder / "data" / "users.txt"),
            "CHATBOT_API": "true",
            "CHATBOT_BEHIND_PROXY": "true",
            "CHATBOT_METRICS_TOKEN": token,
            "CHATBOT_LOG_FORMAT": "json",
            **({"CHATBOT_TOKENIZER": start.tokenizer} if start.tokenizer else {}),
        }
        log.step("A user and a key are made, two replicas are started")
        _command(environment, "user", "add", "kim", stdin="a long password\n")
        key = _command(environment, "key", "add", "together", "--user", "kim").strip()
        replicas = (Replica(folder, environment, 1), Replica(folder, environment, 2))
        for replica in replicas:
            stack.callback(replica.kill)
        for replica in replicas:
            log.block(json.dumps(replica.wait()))
        entrance = stack.enter_context(proxy(folder, replicas, log))
        schema = url.rpartition("%3D")[2]
        yield Team(postgres, schema, engine, replicas, entrance, key, token)


def _command(environment: dict[str, str], *words: str, stdin: str = "") -> str:
    done = subprocess.run(
        [sys.executable, "-m", "chatbot", *words],
        cwd=ROOT,
        env=environment,
        input=stdin,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{' '.join(words)}: {done.stderr}")
    return done.stdout


@contextmanager
def proxy(folder: Path, replicas: tuple[Replica, Replica], log: Log) -> Iterator[str]:
    """HAProxy by the file of the deployment, with these replicas; else the first replica."""
    program = shutil.which("haproxy")
    if program is None:
        log.say("- HAProxy is not installed, so the replicas are asked directly")
        yield replicas[0].url
        return
    port = free_port()
    text = (ROOT / "deploy" / "haproxy.cfg").read_text(encoding="utf-8")
    text = text.replace("bind :8080", f"bind 127.0.0.1:{port}")
    text = text.replace(" resolvers docker init-addr none", "")
    servers = "\n".join(f"    server r{r.port} 127.0.0.1:{r.port} check" for r in replicas)
    text = re.sub(r"    server-template .*", servers, text)
    file = folder / "haproxy.cfg"
    file.write_text(text, encoding="utf-8")
    with (folder / "haproxy.log").open("ab") as output:
        running = subprocess.Popen([program, "-db", "-f", str(file)], stderr=output)
    log.say(f"- HAProxy by deploy/haproxy.cfg before {len(replicas)} replicas")
    try:
        url = f"http://127.0.0.1:{port}"
        _until_served(url)
        yield url
    finally:
        running.terminate()
        running.wait()


def _until_served(url: str) -> None:
    """Until the proxy has found a replica that is ready. Raises TimeoutError."""
    ends = time.monotonic() + 60
    while time.monotonic() < ends:
        try:
            if httpx.get(url, timeout=10).status_code < 500:
                return
        except httpx.HTTPError:
            pass
        time.sleep(0.5)
    raise TimeoutError("HAProxy found no replica")
