"""Runs every part of a team's deployment together once, and writes down what happened.

    python -m benchmarks.together --write docs/together.md

PostgreSQL (Debian's server), Milvus (milvus-lite), a model server with the embedded demo model
(llama.cpp's if llama-cpp-python[server] is installed, else `transformers serve`), two replicas of
page and API, and HAProxy by deploy/haproxy.cfg if it is installed. Of the replicas one is killed in
mid-reply, then the model server. Exit status 1 when a step does not hold.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import secrets
import shutil
import subprocess
import sys
import tempfile
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
FIGURES = (
    "turns_total",
    "tokens_total",
    "folds_total",
    "first_token_seconds_count",
    "engine_ready",
)


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


def run(team: Team, log: Log) -> None:
    """The steps, each with what must hold."""
    first, second = team.replicas
    _page(team, log)
    _document(team, log)
    log.step("The conversation goes on at either replica")
    for place, question in (
        (second, "My cat is called Minuet."),
        (first, "What is my cat called?"),
    ):
        told = team.ask(question, at=place.url)
        log.block(_shown(question, told))
        log.check(told["status"] == 200, "answered")
    log.check(team.stored() == ["0 stop", "1 stop", "2 stop"] or _all_ended(team), "three turns")
    _kill_replica(team, log)
    _kill_engine(team, log)
    _figures(team, log)
    log.step("The end")
    log.say(f"- exit status of the replica that was left: {second.end()}")
    log.say(f"- turns in the database: {', '.join(team.stored())}")
    rows = team.postgres.run(f"SELECT count(*) FROM {team.schema}.runners")
    log.check(rows == "0" or rows == "1", f"processes that count as living: {rows}")


def _all_ended(team: Team) -> bool:
    """A small model may be cut off at the most tokens; that is an end as well."""
    return [row.split()[1] in ("stop", "length") for row in team.stored()] == [True] * 3


def _page(team: Team, log: Log) -> None:
    log.step("The page asks who comes, and lets kim in")
    with httpx.Client(base_url=team.entrance, timeout=60) as browser:
        log.check(browser.get("/").status_code in (200, 303, 307), "the page answers")
        form = {"user": "kim", "name": "kim", "username": "kim", "password": "a long password"}
        origin = {"origin": team.entrance}
        answer = browser.post("/local/login", data=form, headers=origin, follow_redirects=True)
        page = browser.get("/")
        log.check(
            "gradio" in page.text, f"after the login ({answer.status_code}) the chat is shown"
        )
        if shutil.which("haproxy"):
            log.check("REPLICA" in browser.cookies, "a cookie keeps the browser at its replica")
            log.check(browser.get("/metrics").status_code == 404, "figures are not for browsers")


def _document(team: Team, log: Log) -> None:
    log.step("A document is uploaded once, found by both, and answers a question")
    headers = {"authorization": f"Bearer {team.key}"}
    text = b"The lighthouse of Sokcho was built in 1957. Its lamp is 58 metres above the sea.\n"
    sent = httpx.post(
        f"{team.entrance}/v1/files",
        files={"file": ("lighthouse.txt", text)},
        data={"purpose": "user_data"},
        headers=headers,
        timeout=60,
    ).json()
    ends = time.monotonic() + 120
    found = {"status": "none"}
    while found.get("status") != "processed" and time.monotonic() < ends:
        time.sleep(0.5)
        places = (
            httpx.get(f"{r.url}/v1/files", headers=headers, timeout=60) for r in team.replicas
        )
        lists = [answer.json().get("data", []) for answer in places]
        if all(len(files) == 1 for files in lists):
            found = lists[1][0]
    log.block(json.dumps({key: found.get(key) for key in ("filename", "status")}))
    log.check(found.get("status") == "processed", "both replicas list it, once")
    question = "When was the lighthouse of Sokcho built?"
    told = team.ask(
        question, at=team.replicas[1].url, file_ids=str(found.get("id", sent.get("id")))
    )
    log.block(_shown(question, told))
    kinds = [segment["kind"] for segment in told["chatbot"]["trace"]["segments"]]
    log.check("passage" in kinds, "the replica that did not read it has its passage in the prompt")


def _kill_replica(team: Team, log: Log) -> None:
    log.step("One replica is killed in mid-reply")
    first = team.replicas[0]
    question = "Tell me a long story about a lighthouse and its keeper."
    body = {
        "model": "default",
        "stream": True,
        "messages": [{"role": "user", "content": question}],
        "metadata": {"conversation_id": "house"},
    }
    headers = {"authorization": f"Bearer {team.key}"}
    pieces = 0
    try:
        with httpx.stream(
            "POST", f"{first.url}/v1/chat/completions", json=body, headers=headers, timeout=ANSWER_S
        ) as stream:
            for line in stream.iter_lines():
                pieces += '"content"' in line
                if pieces == 5:
                    first.kill()
    except httpx.HTTPError as error:
        log.say(f"- after {pieces} pieces the client sees: {type(error).__name__}")
    log.say(f"- turns in the database: {', '.join(team.stored())}")
    began = time.monotonic()
    told: dict[str, Any] = {}
    while time.monotonic() - began < 120:
        told = team.ask(question)
        if told["status"] == 200:
            break
        time.sleep(1)
    log.check(told.get("status") == 200, "asked again through the entrance, the other one answers")
    log.say(
        f"- that took {time.monotonic() - began:.0f} s (a dead process is believed in for 20 s)"
    )
    rows = team.stored()
    log.say(f"- turns in the database: {', '.join(rows)}")
    log.check(len(rows) == 4 and "running" not in rows[-1], "the turn is there once, in its place")


def _kill_engine(team: Team, log: Log) -> None:
    log.step("The model server is killed, and started again")
    team.engine.kill()
    told = team.ask("Are you there?", at=team.replicas[1].url)
    error = told.get("error") or {}
    log.block(f"{told['status']}: {error.get('message', '')}")
    log.check(told["status"] >= 500 or bool(error), "while it is away, that is said")
    team.engine.start()
    began = time.monotonic()
    while time.monotonic() - began < 120:
        told = team.ask("Are you there?", at=team.replicas[1].url)
        if told["status"] == 200:
            break
        time.sleep(2)
    log.block(_shown("Are you there?", told))
    log.check(told["status"] == 200, "after that the conversation goes on")


def _figures(team: Team, log: Log) -> None:
    log.step("Figures and logs")
    url = team.replicas[1].url
    log.check(
        httpx.get(f"{url}/metrics").status_code == 404, "nobody reads figures without the token"
    )
    text = httpx.get(f"{url}/metrics", headers={"authorization": f"Bearer {team.token}"}).text
    lines = [line for line in text.splitlines() if any(f"chatbot_{f}" in line for f in FIGURES)]
    log.block("\n".join(line for line in lines if not line.startswith("#")))
    log.check("Minuet" not in text and "lighthouse" not in text, "no text is in the figures")


def _shown(question: str, told: dict[str, Any]) -> str:
    if told["status"] != 200:
        return f"{question}\n{told['status']}: {told.get('error')}"
    usage, reply = told["usage"], told["choices"][0]["message"]["content"]
    cached = usage.get("prompt_tokens_details", {}).get("cached_tokens", 0)
    return (
        f"> {question}\n{' '.join(reply.split())}\n({usage['prompt_tokens']} prompt tokens, "
        f"{cached} of them cached, {usage['completion_tokens']} written)"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", type=Path, metavar="FILE", help="the log as Markdown")
    arguments = parser.parse_args()
    log = Log()
    log.say(
        "# All parts together\n\nWritten by `python -m benchmarks.together --write "
        "docs/together.md`."
    )
    with tempfile.TemporaryDirectory() as folder, team(Path(folder), log) as parts:
        run(parts, log)
        logs = "".join(file.read_text() for file in Path(folder).glob("replica*.log"))
        log.check("Minuet" not in logs, "no text of the chat is in the replicas' logs")
        ended = [line for line in logs.splitlines() if "A reply has ended" in line]
        log.block(ended[-1] if ended else logs[-2000:])
    log.say(f"\n{'All held.' if not log.faults else 'DID NOT HOLD: ' + '; '.join(log.faults)}")
    if arguments.write:
        arguments.write.write_text("\n".join(log.lines) + "\n", encoding="utf-8")
    sys.exit(1 if log.faults else 0)


if __name__ == "__main__":
    main()
