"""What the API answers while something behind it is away: in OpenAI's shape, and nothing leaks."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

pytest.importorskip("openai", reason="needs the packages of requirements-team.txt")

from peer_server import Fault, Peer
from remote_rig import remote_engine

from benchmarks.postgres_server import PostgresServer
from chatbot.api.errors import api_error
from chatbot.engine import remote_reply
from chatbot.engine.base import EngineStatus
from chatbot.engine.scripted import ScriptedEngine
from chatbot.errors import EngineBusyError, StoreError
from chatbot.services import build_services
from chatbot.settings import Settings
from chatbot.ui.server import launch
from retrieval.catalogue_database import CatalogueDatabase
from retrieval.types import IndexAwayError, LoadError, RetrievalError
from tests.api_rig import Api

KEY = "sk-very-secret-0123456789"
HELLO = {"model": "default", "messages": [{"role": "user", "content": "Hello"}]}


@pytest.fixture(autouse=True)
def no_long_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote_reply, "FIRST_WAIT_S", 0.01)


class Behind(Api):
    """The API over a model's server of which the test has the command."""

    def __init__(self, folder: Path) -> None:
        self.peer = Peer("vLLM", folder / "peer", key=KEY)
        super().__init__(folder / "data", engine=lambda: remote_engine(self.peer.url, api_key=KEY))

    def close(self) -> None:
        super().close()
        self.peer.stop()


class _At:
    """A running program's API at its address."""

    def __init__(self, url: str) -> None:
        self.plain = httpx.Client(base_url=f"{url}v1", trust_env=False, timeout=60.0)


@pytest.fixture(scope="module")
def behind(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Behind]:
    api = Behind(tmp_path_factory.mktemp("behind"))
    yield api
    api.close()


def ask(api: Api | _At, **more: Any) -> tuple[int, dict[str, Any], dict[str, str]]:
    """Status, error and headers of a request; an error in a stream has the status 200."""
    answer = api.plain.post("chat/completions", json=HELLO | more)
    events = [line[6:] for line in answer.text.splitlines() if line.startswith("data: ")]
    record = json.loads(events[-1] if events else answer.text)
    assert set(record.get("error", {})) in (set(), {"message", "type", "param", "code"})
    return answer.status_code, record.get("error", {}), dict(answer.headers)


@pytest.mark.parametrize("where", [{}, {"metadata": {"conversation_id": "talk"}}])
def test_a_busy_model_server_is_503_with_its_words_and_its_wish(
    behind: Behind, where: dict[str, Any]
) -> None:
    behind.peer.faults = [Fault(429, "slow down", headers={"retry-after": "3600"})]
    status, error, headers = ask(behind, **where)
    assert (status, error["code"], headers["retry-after"]) == (503, "model_server_busy", "3600")
    assert "slow down" in error["message"] and error["type"] == "server_error"
    behind.peer.faults = [Fault(500, "boom")] * 9
    status, error, headers = ask(behind, **where)
    assert (status, error["code"], headers["retry-after"]) == (503, "model_server_busy", "5")
    behind.peer.faults = []
    assert ask(behind, **where)[0] == 200


def test_a_key_that_the_model_server_refuses_is_502_and_leaks_nothing(behind: Behind) -> None:
    said = f"Incorrect API key provided: {KEY[:9]}***6789"
    for more in ({}, {"stream": True}):
        behind.peer.faults = [Fault(401, said)]
        status, error, _ = ask(behind, **more)
        assert (status, error["code"]) == (200 if more else 502, "model_server_refused")
        assert "sk-very" not in str(error) and "127.0.0.1" not in str(error)
        assert "CHATBOT" not in error["message"], "that is for who runs the server"


@pytest.mark.parametrize(
    ("fault", "status", "code"),
    [
        (Fault(404, "The model `toy` does not exist."), 502, "model_server_refused"),
        (Fault(400, "unknown field"), 502, "model_server_refused"),
        (Fault(400, "the context length is exceeded"), 400, "context_length_exceeded"),
        (Fault(drop_after=3), 503, "model_server_lost"),
    ],
)
def test_each_failure_of_the_model_server_has_its_status(
    behind: Behind, fault: Fault, status: int, code: str
) -> None:
    behind.peer.faults = [fault] * 4
    got, error, headers = ask(behind)
    assert (got, error["code"]) == (status, code)
    assert ("retry-after" in headers) == (status == 503)
    behind.peer.faults = []


@pytest.mark.parametrize("where", [{}, {"metadata": {"conversation_id": "later"}}])
def test_a_model_server_that_is_away_is_503_and_then_it_goes_on(
    behind: Behind, where: dict[str, Any]
) -> None:
    behind.peer.stop()
    # A text that was counted before needs no server for that, a new one does.
    new = {"messages": [{"role": "user", "content": f"Never counted yet {where}"}]}
    for more in (where, where | new, where | {"stream": True} | new):
        status, error, headers = ask(behind, **more)
        assert (status, error["code"]) == (503, "model_server_away") or (
            status == 200 and more.get("stream") and error["code"] == "model_server_away"
        )
        assert status == 200 or headers["retry-after"] == "5"
        assert "127.0.0.1" not in error["message"]
    behind.peer.start()
    assert ask(behind, **where)[0] == 200


def test_a_model_that_did_not_load_says_nothing_of_why(
    behind: Behind, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind = type(behind.services.engine)
    failed = EngineStatus("failed", message=f"The server http://inner does not take {KEY}")
    monkeypatch.setattr(kind, "status", property(lambda self: failed))
    status, error, headers = ask(behind)
    assert (status, error["code"], headers["retry-after"]) == (503, "model_not_ready", "5")
    assert "inner" not in error["message"] and KEY not in error["message"]


def test_without_its_database_it_answers_503_and_goes_on_when_that_is_back(
    tmp_path: Path, postgres: PostgresServer
) -> None:
    url = postgres.fresh()
    settings = Settings(
        data_dir=tmp_path, port=0, embedding_model="none", api=True, database_url=url
    )
    services = build_services(settings, engine=ScriptedEngine(["Yes."] * 9))
    handle = launch(services)
    api = _At(handle.url)
    try:
        where = {"metadata": {"conversation_id": "talk"}}
        assert ask(api, **where)[0] == 200
        postgres.stop()
        try:
            for more in (where, where | {"stream": True}):
                status, error, headers = ask(api, **more)
                assert (status, error["code"]) == (503, "store_unavailable"), error
                assert headers["retry-after"] == "5"
                assert "postgres" not in error["message"], "that is for who runs the server"
            assert ask(api)[0] == 200, "what is not stored needs no database"
        finally:
            postgres.start()
        assert ask(api, **where)[0] == 200
        asked = services.store.load("talk").turns
        assert [(turn.question, turn.finish) for turn in asked] == [("Hello", "stop")] * 2
    finally:
        api.plain.close()
        handle.close()
        services.close()


def test_each_kind_of_error_has_its_status() -> None:
    assert api_error(LoadError("This file is damaged.")).status == 400
    assert api_error(StoreError("The turn was removed; ask again.")).message.startswith("The turn")
    for error in (
        IndexAwayError("Milvus at http://inner does not answer."),
        RetrievalError("The document index /inner/index.db is damaged."),
        StoreError("The conversation database /inner/chats.db cannot grow."),
    ):
        known = api_error(error)
        assert known.status == 503 and known.retry_after_s and "inner" not in known.message
    assert api_error(EngineBusyError("Too many wait.")).code == "engine_busy"


def test_a_list_of_documents_that_is_away_is_told_from_one_that_is_broken(
    postgres: PostgresServer,
) -> None:
    database = CatalogueDatabase(postgres.fresh())
    postgres.stop()
    try:
        with pytest.raises(IndexAwayError), database.read():
            pass
    finally:
        postgres.start()
        database.close()
