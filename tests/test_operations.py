"""Health, readiness, figures and logs: what those who run the program see, and never see."""

from __future__ import annotations

import ast
import io
import json
import logging
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from pydantic import SecretStr

from chatbot.chat import TurnDone
from chatbot.engine.reach import Reach
from chatbot.engine.scripted import ScriptedEngine, ScriptedReply
from chatbot.errors import ChatbotError, EngineError, InputError, SettingsError
from chatbot.json_logs import log_json
from chatbot.services import Services, build_services
from chatbot.settings import Settings
from chatbot.ui.server import Handle, launch

SECRET = "PLUM7341"
TOKEN = "let-prometheus-in"
ROOT = Path(__file__).resolve().parent.parent


def script(prompt: str, ids: object) -> Any:
    question = prompt.rsplit("<|user|>", 1)[-1]
    if "fails" in question:
        return ScriptedReply(
            f"{SECRET} was", fail_after_tokens=2, error=EngineError(f"no {SECRET}")
        )
    return f"The {SECRET} is known, and here are some more words about it."


class FarEngine(ScriptedEngine):
    """One whose model is elsewhere. A class of its own: Python remembers of a class for good
    whether it has `reach`."""

    def look(self) -> Reach:
        return "ok"

    def reach(self) -> Reach:
        return self.look()


@pytest.fixture(scope="module")
def services(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Services]:
    settings = Settings(
        data_dir=tmp_path_factory.mktemp("data"),
        embedding_model="none",
        port=0,
        window_tokens=512,
        reply_tokens=40,
        summary="extractive",
        metrics_token=SecretStr(TOKEN),
    )
    built = build_services(settings, engine=FarEngine(script, window_tokens=512))
    yield built
    built.close()


@pytest.fixture(scope="module")
def page(services: Services) -> Iterator[Handle]:
    handle = launch(services)
    yield handle
    handle.close()


@pytest.fixture
def logged() -> Iterator[io.StringIO]:
    """What is written as JSON while a test runs."""
    root, stream = logging.getLogger(), io.StringIO()
    before = (list(root.handlers), root.level)
    log_json(stream)
    yield stream
    root.handlers, level = before
    root.setLevel(level)
    for name in ("chatbot", "retrieval"):
        logging.getLogger(name).setLevel(logging.NOTSET)


def talk(services: Services, *questions: str) -> str:
    chat_id = services.store.create_conversation(f"about {SECRET}").id
    for question in questions:
        events = list(services.chat.reply(chat_id, question))
        assert isinstance(events[-1], TurnDone)
    services.chat.wait_for_folds(60)
    return chat_id


def figures(page: Handle) -> dict[str, float]:
    answer = httpx.get(f"{page.url}metrics", headers={"authorization": f"Bearer {TOKEN}"})
    assert answer.status_code == 200
    lines = [line for line in answer.text.splitlines() if not line.startswith("#")]
    assert SECRET not in answer.text
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}


def test_health_and_readiness(services: Services, page: Handle) -> None:
    assert httpx.get(f"{page.url}healthz").json() == {"status": "ok"}
    ready = httpx.get(f"{page.url}readyz")
    assert (ready.status_code, ready.json()["store"]) == (200, "ok")
    assert httpx.head(f"{page.url}readyz").status_code == 200
    assert httpx.post(f"{page.url}healthz").status_code != 200


def test_a_replica_without_its_database_or_engine_is_not_ready(
    services: Services, page: Handle, monkeypatch: pytest.MonkeyPatch
) -> None:
    from chatbot import store
    from chatbot.engine.base import EngineStatus
    from chatbot.errors import StoreError

    def fail(self: store.Store) -> None:
        raise StoreError("host db.internal refuses")

    with monkeypatch.context() as patch:
        patch.setattr(store.Store, "check", fail)
        answer = httpx.get(f"{page.url}readyz")
    assert (answer.status_code, answer.json()["store"]) == (503, "unreachable")
    assert "internal" not in answer.text
    with monkeypatch.context() as patch:
        status = property(lambda self: EngineStatus("loading", f"reads {SECRET}"))
        patch.setattr(ScriptedEngine, "status", status)
        answer = httpx.get(f"{page.url}readyz")
    assert (answer.status_code, answer.json()["engine"]) == (503, "loading")
    assert SECRET not in answer.text


def test_a_replica_whose_model_server_is_away_is_not_ready(
    page: Handle, monkeypatch: pytest.MonkeyPatch
) -> None:
    for state in ("unreachable", "refused"):
        monkeypatch.setattr(FarEngine, "look", lambda self, s=state: s)
        answer = httpx.get(f"{page.url}readyz")
        assert (answer.status_code, answer.json()["engine"]) == (503, state)
        assert figures(page)["chatbot_engine_ready"] == 0


@pytest.mark.parametrize("route", ["readyz", "metrics"])
def test_a_look_at_the_model_server_holds_nobody_else_up(
    route: str, page: Handle, monkeypatch: pytest.MonkeyPatch
) -> None:
    looking, others_answered = threading.Event(), threading.Event()

    def look(self: FarEngine) -> str:
        looking.set()
        return "ok" if others_answered.wait(20) else "unreachable"

    monkeypatch.setattr(FarEngine, "look", look)
    got: list[int] = []
    headers = {"authorization": f"Bearer {TOKEN}"}
    asks = threading.Thread(
        target=lambda: got.append(
            httpx.get(f"{page.url}{route}", headers=headers, timeout=40).status_code
        )
    )
    asks.start()
    assert looking.wait(20)
    assert httpx.get(f"{page.url}healthz", timeout=20).status_code == 200
    others_answered.set()
    asks.join(40)
    assert got == [200]


@pytest.mark.parametrize("shown", ["", "Bearer wrong", f"Basic {TOKEN}", "Bearer é"])
def test_figures_are_for_who_has_the_token(page: Handle, shown: str) -> None:
    headers = {"authorization": shown.encode()}
    assert httpx.get(f"{page.url}metrics", headers=headers).status_code == 404


def test_a_token_may_have_letters_of_any_language() -> None:
    from chatbot.operations import may_read_metrics

    settings = Settings(metrics_token=SecretStr("토큰-é"))
    sent = "Bearer 토큰-é".encode().decode("latin-1")  # as a server reads a header
    assert may_read_metrics(settings, sent)
    assert not may_read_metrics(settings, sent + "x")
    assert not may_read_metrics(settings, "Bearer 토큰-é")


def test_without_a_token_nobody_reads_the_figures(services: Services) -> None:
    from chatbot.operations import may_read_metrics

    assert not may_read_metrics(Settings(), "Bearer None")
    assert not may_read_metrics(Settings(), "Bearer ")


def test_figures_tell_what_happened(services: Services, page: Handle) -> None:
    before = figures(page)
    talk(services, *(f"Tell me about {SECRET}, part {n}. " + "word " * 40 for n in range(8)))
    chat_id = talk(services, f"{SECRET} fails")
    with pytest.raises(InputError), services.chat.queue.tally.refusals():
        raise InputError(f"{SECRET} cannot be")
    with pytest.raises(ChatbotError):
        list(services.chat.reply("no such chat", SECRET))
    assert services.store.load(chat_id).turns[0].finish == "error"
    now = figures(page)

    def change(name: str) -> float:
        return now.get(name, 0.0) - before.get(name, 0.0)

    assert change('chatbot_turns_total{finish="stop"}') == 8
    assert change('chatbot_turns_total{finish="error"}') == 1
    assert change('chatbot_tokens_total{kind="prompt"}') > 8 * 50
    assert change('chatbot_tokens_total{kind="cached"}') > 0
    assert change('chatbot_tokens_total{kind="completion"}') > 8 * 5
    assert change('chatbot_refusals_total{kind="InputError"}') == 2
    assert change("chatbot_first_token_seconds_count") >= 8
    assert change('chatbot_first_token_seconds_bucket{le="+Inf"}') >= 8
    assert change("chatbot_wait_seconds_count") == 9
    assert sum(change(name) for name in now if name.startswith("chatbot_folds_total")) >= 1
    assert now["chatbot_queue_length"] == 0
    assert now["chatbot_engine_ready"] == 1
    assert {"chatbot_cache_bytes", "chatbot_process_bytes"} <= now.keys()


def test_steps_of_the_ladder_are_counted() -> None:
    import dataclasses

    from chatbot.messages import Turn, Usage
    from chatbot.tally import Tally

    tally = Tally()
    turn = Turn("t", (), finish="memory", usage=Usage(ladder=("smaller_piece", "drop_caches")))
    tally.turn(turn, conversation_id="c", waited_s=0.2, first_token_s=None)
    tally.turn(dataclasses.replace(turn), conversation_id="c", waited_s=400.0, first_token_s=1.0)
    assert tally.counts["ladder_steps", "drop_caches"] == 2
    assert tally.durations["wait"].counts[2] == tally.durations["wait"].counts[-1] == 1
    assert tally.durations["wait"].sum_s == pytest.approx(400.2)


def test_logs_are_json_lines_without_any_text(services: Services, logged: io.StringIO) -> None:
    talk(services, *(f"Tell me about {SECRET}, part {n}. " + "word " * 40 for n in range(8)))
    talk(services, f"{SECRET} fails")
    log = logging.getLogger("chatbot.test")
    try:
        raise ValueError(SECRET) from EngineError(SECRET)
    except ValueError as error:
        log.exception("Something failed: %s", error)
    log.warning("%d of %s", 3, SECRET)
    logging.getLogger("somebody.else").warning(f"they say {SECRET}")
    text = logged.getvalue()
    assert SECRET not in text
    lines = [json.loads(line) for line in text.splitlines()]
    assert {"time", "level", "part", "event"} <= lines[0].keys()
    ended = [line for line in lines if line["event"] == "A reply has ended."]
    assert len(ended) == 9
    assert ended[0]["prompt_tokens"] > 50
    assert ended[0]["finish"] == "stop"
    assert any(line["event"] == "A summary was tried." for line in lines)
    assert any(line["event"] == "3 of …" for line in lines)
    failed = next(line for line in lines if "error" in line)
    assert (failed["error"]["kind"], failed["error"]["cause"]) == ("ValueError", "EngineError")
    assert failed["error"]["places"][0].startswith("test_operations.py:")


def test_patterns_of_log_lines_stand_in_the_source() -> None:
    """A pattern is written as it is, so none may be put together while the program runs."""
    names = {"debug", "info", "warning", "error", "exception", "critical"}
    found = 0
    for folder in ("chatbot", "retrieval"):
        for path in (ROOT / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
                    continue
                owner = node.func.value
                is_log = isinstance(owner, ast.Name) and owner.id.lower().strip("_") == "log"
                if is_log and node.func.attr in names:
                    assert isinstance(node.args[0], ast.Constant), f"{path}:{node.lineno}"
                    found += 1
    assert found > 10


def test_figures_need_their_package(monkeypatch: pytest.MonkeyPatch) -> None:
    from chatbot.operations import check_settings

    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    check_settings(Settings())
    with pytest.raises(SettingsError, match="requirements-team"):
        check_settings(Settings(metrics_token=SecretStr("x")))
