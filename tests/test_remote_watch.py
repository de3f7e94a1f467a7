"""Whether a model server is there: looked at shortly, seldom, and told by replies as well."""

from __future__ import annotations

import threading
from collections.abc import Generator, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, cast

import httpx
import openai
import pytest
from peer_server import Peer
from remote_rig import prompt_of, remote_engine

from chatbot.engine import remote_reply, remote_watch
from chatbot.engine.base import EngineEvent, Finished, SamplingParams, TextDelta
from chatbot.engine.lazy import LazyEngine
from chatbot.engine.owned import OwnedEngine
from chatbot.engine.reach import Reach, state_now
from chatbot.engine.remote_client import RemoteClient
from chatbot.engine.remote_watch import FRESH_S, ServerWatch
from chatbot.engine.scripted import ScriptedEngine
from chatbot.engine.switching import SwitchingEngine
from chatbot.errors import (
    ConnectionLostError,
    NoAnswerError,
    RemoteError,
    ServerBusyError,
    UnknownModelError,
    WrongKeyError,
)
from chatbot.messages import Usage
from chatbot.settings import Settings

MINE = [{"id": "mine"}]


class Server:
    """Lists what it is told to list, or raises it."""

    def __init__(self) -> None:
        self.lists: list[dict[str, Any]] | Exception = MINE
        self.looks = 0
        self.may_answer = threading.Event()
        self.may_answer.set()
        self.asked = threading.Event()

    def models(self, *, silence_s: float) -> list[dict[str, Any]]:
        self.looks += 1
        self.asked.set()
        assert self.may_answer.wait(20)
        if isinstance(self.lists, Exception):
            raise self.lists
        return self.lists


class Rig:
    """A watch whose time a test lets pass."""

    def __init__(self) -> None:
        self.now_s = 1000.0
        self.server = Server()
        client = cast(RemoteClient, self.server)
        self.watch = ServerWatch(client, "mine", clock=lambda: self.now_s)

    def later(self, lists: list[dict[str, Any]] | Exception) -> Reach:
        """What is told of a server that lists this, once what was known is old."""
        self.server.lists = lists
        self.now_s += FRESH_S
        return self.watch.reach()

    def reply(self, *events: EngineEvent | RemoteError) -> None:
        def made() -> Generator[EngineEvent]:
            for event in events:
                if isinstance(event, RemoteError):
                    raise event
                yield event

        list(self.watch.following(made()))


@pytest.fixture
def rig() -> Rig:
    return Rig()


def busy(status: int) -> ServerBusyError:
    """As `remote_faults` makes it of a status."""
    request = httpx.Request("GET", "http://far/v1/models")
    error = ServerBusyError("It has too much to do, or a fault.")
    error.__cause__ = openai.APIStatusError(
        "no",
        response=httpx.Response(status, request=request),  # type: ignore[arg-type]
        body=None,
    )
    return error


@pytest.mark.parametrize(
    ("lists", "state"),
    [
        (MINE, "ok"),
        ([], "ok"),
        ([{"id": "other"}, *MINE], "ok"),
        ([{"id": "other"}], "refused"),
        (NoAnswerError("Nobody."), "unreachable"),
        (busy(503), "unreachable"),
        (busy(429), "ok"),
        (WrongKeyError("No."), "refused"),
        (RemoteError("It lists no models."), "refused"),
    ],
)
def test_a_look_tells_what_is_the_matter(
    rig: Rig, lists: list[dict[str, Any]] | Exception, state: str
) -> None:
    assert rig.later(lists) == state
    assert rig.later(MINE) == "ok"


def test_what_is_known_is_believed_for_some_seconds(rig: Rig) -> None:
    rig.server.lists = NoAnswerError("Nobody.")
    assert rig.watch.reach() == "ok" and rig.server.looks == 0
    assert rig.later(NoAnswerError("Nobody.")) == "unreachable"
    rig.server.lists = MINE
    assert [rig.watch.reach() for _ in range(9)] == ["unreachable"] * 9 and rig.server.looks == 1
    rig.now_s += FRESH_S
    assert rig.watch.reach() == "ok" and rig.server.looks == 2


def test_a_server_that_says_nothing_is_away_and_only_one_waits_for_it(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig.server.may_answer.clear()
    rig.now_s += FRESH_S
    first = threading.Thread(target=rig.watch.reach)
    first.start()
    assert rig.server.asked.wait(20)
    assert rig.watch.reach() == "ok" and rig.server.looks == 1
    rig.server.may_answer.set()
    first.join(20)
    rig.server.may_answer.clear()
    monkeypatch.setattr(remote_watch, "LOOK_S", 0.01)
    assert rig.later(MINE) == "unreachable"
    rig.server.may_answer.set()


@pytest.mark.parametrize(
    ("error", "state"),
    [
        (NoAnswerError("Nobody."), "unreachable"),
        (WrongKeyError("No."), "refused"),
        (UnknownModelError("Which?"), "refused"),
    ],
)
def test_a_reply_that_fails_tells_it_at_once(rig: Rig, error: RemoteError, state: str) -> None:
    with pytest.raises(type(error)):
        rig.reply(TextDelta("Hel"), error)
    assert rig.watch.reach() == state and rig.server.looks == 0


@pytest.mark.parametrize("error", [busy(500), ConnectionLostError("Gone."), RemoteError("400")])
def test_after_any_other_failure_the_server_is_looked_at_at_once(
    rig: Rig, error: RemoteError
) -> None:
    with pytest.raises(type(error)):
        rig.reply(error)
    rig.server.lists = NoAnswerError("Nobody.")
    assert rig.watch.reach() == "unreachable" and rig.server.looks == 1


def test_a_reply_that_comes_shows_that_the_server_is_there(rig: Rig) -> None:
    assert rig.later(NoAnswerError("Nobody.")) == "unreachable"
    rig.reply(Finished("cancelled", "", (), Usage()))
    assert rig.watch.reach() == "unreachable", (
        "a reply that was stopped before it began asks nobody"
    )
    rig.reply(TextDelta("Hel"))
    assert rig.watch.reach() == "ok" and rig.server.looks == 1


def test_a_reply_during_a_look_is_newer_than_the_look(rig: Rig) -> None:
    rig.server.lists = NoAnswerError("Nobody.")
    rig.server.may_answer.clear()
    rig.now_s += FRESH_S
    looking = threading.Thread(target=rig.watch.reach)
    looking.start()
    assert rig.server.asked.wait(20)
    rig.now_s += 0.5
    rig.reply(TextDelta("Hel"))
    rig.server.may_answer.set()
    looking.join(20)
    assert rig.watch.reach() == "ok" and rig.server.looks == 1


def test_a_reply_that_is_left_is_cut_off(rig: Rig) -> None:
    closed = threading.Event()

    def endless() -> Generator[EngineEvent]:
        try:
            while True:
                yield TextDelta("on ")
        finally:
            closed.set()

    events = rig.watch.following(endless())
    next(events)
    events.close()
    assert closed.is_set()


@pytest.fixture
def peer(tmp_path: Path) -> Iterator[Peer]:
    peer = Peer("vLLM", tmp_path / "peer")
    yield peer
    peer.stop()


def test_a_server_that_dies_is_away_until_it_is_back(
    peer: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote_reply, "FIRST_WAIT_S", 0.01)
    with closing(remote_engine(peer.url)) as engine:
        mine = OwnedEngine(
            SwitchingEngine(Settings(), load=lambda _: engine, prepare=print), "anna"
        )
        prompt = prompt_of(engine, "Who?")
        peer.stop()
        assert state_now(mine) == "ok", "what the start has shown is believed for some seconds"
        with pytest.raises(NoAnswerError):
            list(mine.generate(prompt, SamplingParams(max_tokens=8)))
        assert state_now(mine) == "unreachable" and mine.status.state == "ready"
        peer.start()
        assert state_now(mine) == "unreachable"
        monkeypatch.setattr(remote_watch, "FRESH_S", 0.0)
        assert state_now(mine) == "ok"
        peer.stop()
        assert state_now(mine) == "unreachable"


def test_an_engine_that_stands_for_another_asks_that_one() -> None:
    class Away(ScriptedEngine):
        def reach(self) -> Reach:
            return "unreachable"

    lazy = LazyEngine(lambda handle: Away())
    lazy.wait(20)
    assert state_now(lazy) == "unreachable"
    assert state_now(ScriptedEngine()) == "ok"
    may_load = threading.Event()
    loading = LazyEngine(lambda handle: Away() if may_load.wait(20) else ScriptedEngine())
    assert state_now(loading) == "loading"
    loading.close()
    assert state_now(loading) == "failed"
    may_load.set()
