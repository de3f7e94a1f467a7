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
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import httpx

from benchmarks.together_parts import ANSWER_S, Log, Team, team

FIGURES = (
    "turns_total",
    "tokens_total",
    "folds_total",
    "first_token_seconds_count",
    "engine_ready",
)


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
        first = browser.get("/")
        log.check(
            first.status_code < 500, f"whoever comes is sent to the login ({first.status_code})"
        )
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
