"""What goes wrong at a server: each fault is told apart, and nothing that came is lost."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path
from threading import Event, Timer

import pytest
from peer_server import Fault, Peer
from remote_rig import prompt_of, remote_engine

from chatbot.engine import remote, remote_reply
from chatbot.engine.base import EngineEvent, Finished, SamplingParams, TextDelta
from chatbot.engine.remote import RemoteEngine
from chatbot.engine.remote_faults import lost, silent, unreachable
from chatbot.engine.remote_server import ServerFacts
from chatbot.engine.remote_stream import Backoff
from chatbot.errors import (
    ConnectionLostError,
    NoAnswerError,
    PromptTooLongError,
    RemoteError,
    ServerBusyError,
    SettingsError,
    UnknownModelError,
    UntoldContextError,
    WrongKeyError,
)
from chatbot.messages import Notice
from chatbot.ui.i18n import notice_text
from chatbot.ui.sentences import in_language

KEY = "sk-very-secret-0123456789"
PARAMS = SamplingParams(max_tokens=40)


@pytest.fixture(autouse=True)
def no_long_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote_reply, "FIRST_WAIT_S", 0.01)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Peer, RemoteEngine]]:
    peer = Peer("vLLM", tmp_path_factory.mktemp("peer"), key=KEY)
    engine = remote_engine(peer.url, api_key=KEY)
    yield peer, engine
    engine.close()
    peer.stop()


@pytest.fixture
def peer(shared: tuple[Peer, RemoteEngine]) -> Peer:
    peer = shared[0]
    peer.faults, peer.requests = [], []
    peer.cut_off.clear()
    return peer


@pytest.fixture
def engine(shared: tuple[Peer, RemoteEngine]) -> RemoteEngine:
    return shared[1]


def told(engine: RemoteEngine, stop: Event | None = None) -> list[EngineEvent]:
    return list(engine.generate(prompt_of(engine, "Hello?"), PARAMS, stop=stop))


def last(events: list[EngineEvent]) -> Finished:
    assert isinstance(events[-1], Finished)
    return events[-1]


@pytest.mark.parametrize("status", [429, 500, 502, 503])
def test_a_busy_or_faulty_server_is_asked_again(
    peer: Peer, engine: RemoteEngine, status: int
) -> None:
    peer.faults = [Fault(status), Fault(status)]
    end = last(told(engine))
    assert (end.finish, end.text) == ("stop", "The scripted reply.")
    assert [n.code for n in end.notices] == ["remote_asked_again"]
    assert "asked 3 times" in end.notices[0].text


def test_one_that_stays_busy_is_not_asked_for_ever(peer: Peer, engine: RemoteEngine) -> None:
    peer.faults = [Fault(429, "slow down")] * 9
    with pytest.raises(ServerBusyError, match="too much to do: slow down"):
        told(engine)
    assert len(peer.requests) == 1 + remote_reply.ATTEMPTS


def test_the_server_says_how_long_to_wait(peer: Peer, engine: RemoteEngine) -> None:
    peer.faults = [Fault(429, headers={"retry-after": "0.4"})]
    started = time.monotonic()
    last(told(engine))
    assert time.monotonic() - started >= 0.4
    peer.faults = [Fault(429, headers={"retry-after": "3600"})]
    with pytest.raises(ServerBusyError):
        told(engine)
    assert len(peer.requests) == 3, "it was asked again within an hour"


def test_a_wait_for_a_busy_server_can_be_stopped(peer: Peer, engine: RemoteEngine) -> None:
    peer.faults = [Fault(503, headers={"retry-after": "25"})]
    stop = Event()
    Timer(0.2, stop.set).start()
    started = time.monotonic()
    assert last(told(engine, stop)).finish == "cancelled"
    assert time.monotonic() - started < 22


@pytest.mark.parametrize(
    ("fault", "kind", "sentence"),
    [
        (Fault(401, "Incorrect API key provided"), WrongKeyError, "CHATBOT_API_KEY"),
        (Fault(403, "not yours"), WrongKeyError, "not yours"),
        (Fault(404, "The model `toy` does not exist."), UnknownModelError, "set --model"),
        (Fault(400, "gone", "model_not_found"), UnknownModelError, "toy"),
        (Fault(429, "You exceeded your quota", "insufficient_quota"), RemoteError, "billing"),
        (Fault(400, "unknown field"), RemoteError, "status 400"),
        (Fault(413, "context_length_exceeded: too long"), PromptTooLongError, "window_tokens"),
        (
            Fault(400, "the request exceeds the available context size (512 tokens)"),
            PromptTooLongError,
            "512",
        ),
    ],
)
def test_each_refusal_is_told_apart_and_not_repeated(
    peer: Peer, engine: RemoteEngine, fault: Fault, kind: type[RemoteError], sentence: str
) -> None:
    peer.faults = [fault]
    with pytest.raises(RemoteError, match=sentence) as caught:
        told(engine)
    assert type(caught.value) is kind
    assert KEY not in str(caught.value)
    assert len(peer.requests) == 1
    assert last(told(engine)).text == "The scripted reply."


@pytest.mark.parametrize("fault", [Fault(drop_after=5), Fault(ends_after=5)])
def test_what_came_before_the_connection_was_lost_is_told(
    peer: Peer, engine: RemoteEngine, fault: Fault
) -> None:
    peer.faults = [fault]
    texts: list[str] = []
    with pytest.raises(ConnectionLostError, match="in the middle of the reply"):
        for event in engine.generate(prompt_of(engine, "Hello?"), PARAMS):
            texts += [event.text] if isinstance(event, TextDelta) else []
    assert texts and "The scripted reply.".startswith("".join(texts))
    assert len(peer.requests) == 1, "a reply that had begun was asked for again"
    assert last(told(engine)).text == "The scripted reply."


def test_one_that_breaks_off_before_the_first_word_is_asked_again(
    peer: Peer, engine: RemoteEngine
) -> None:
    peer.faults = [Fault(drop_after=0)]
    assert last(told(engine)).text == "The scripted reply."


@pytest.mark.parametrize("fault", [Fault(hangs=True), Fault(stall_after=3)])
def test_silence_has_a_limit(peer: Peer, fault: Fault, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote_reply, "ATTEMPTS", 0)
    engine = remote_engine(peer.url, api_key=KEY, engine_timeout_s=1.0)
    peer.faults = [fault]
    with pytest.raises(NoAnswerError, match="did not answer in time"):
        told(engine)
    engine.close()


@pytest.mark.parametrize("fault", [Fault(hangs=True), Fault(stall_after=3)])
def test_a_stop_cuts_the_connection_and_frees_the_server(
    peer: Peer, engine: RemoteEngine, fault: Fault
) -> None:
    peer.faults = [fault]
    stop = Event()
    if fault.hangs:
        Timer(0.3, stop.set).start()
    started = time.monotonic()
    events: list[EngineEvent] = []
    for event in engine.generate(prompt_of(engine, "Hello?"), PARAMS, stop=stop):
        events.append(event)
        if isinstance(event, TextDelta):
            stop.set()
    assert last(events).finish == "cancelled"
    assert time.monotonic() - started < 40, "it waited for the server"
    if fault.stall_after:
        assert last(events).text
        assert peer.cut_off.wait(30), "the server still works on it"


def test_a_server_that_is_gone_and_comes_back(peer: Peer, engine: RemoteEngine) -> None:
    peer.stop()
    with pytest.raises(NoAnswerError, match=r"No server answers at http://127"):
        told(engine)
    peer.start()
    assert last(told(engine)).text == "The scripted reply."


def test_what_is_wrong_is_said_when_it_starts(peer: Peer, tmp_path: Path) -> None:
    with pytest.raises(WrongKeyError):
        remote_engine(peer.url)
    with pytest.raises(WrongKeyError):
        remote_engine(peer.url, api_key="another")
    with pytest.raises(UnknownModelError, match="did you mean toy"):
        remote_engine(peer.url, api_key=KEY, model="toi")
    with pytest.raises(SettingsError, match="http://host:8000/v1"):
        remote_engine("somewhere", api_key=KEY)
    with pytest.raises(NoAnswerError, match="start it"):
        remote_engine("http://127.0.0.1:9/v1")


def test_a_server_that_tells_no_context_needs_a_setting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    peer = Peer("silent", tmp_path / "model")
    with pytest.raises(UntoldContextError, match="--window-tokens"):
        remote_engine(peer.url)
    with monkeypatch.context() as patch:
        patch.setattr(remote, "look_at", lambda *_: ServerFacts("Ollama", "toy"))
        with pytest.raises(SettingsError, match="--window-tokens") as caught:
            remote_engine(peer.url)
        assert not isinstance(caught.value, UntoldContextError), "Ollama will not tell it later"
    engine = remote_engine(peer.url, window_tokens=400)
    assert engine.info.max_window_tokens <= 400
    engine.close()
    peer.stop()


def test_the_key_goes_to_the_server_and_nowhere_else(
    peer: Peer, engine: RemoteEngine, caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-somebody-else")
    monkeypatch.setenv("OPENAI_ORG_ID", "org-of-somebody-else")
    with caplog.at_level(0):
        told(engine)
    assert peer.headers[-1]["authorization"] == f"Bearer {KEY}"
    assert "of-somebody-else" not in str(peer.headers)
    seen = f"{caplog.text}{engine.info}{engine.status}{engine.tokenizer.name}"
    assert KEY not in seen
    bare = Peer("silent", peer.folder.parent / "bare")
    other = remote_engine(bare.url, window_tokens=400)
    told(other)
    assert "sk-" not in str(bare.headers)
    other.close()
    bare.stop()


def test_the_context_may_shrink_while_it_runs(peer: Peer, engine: RemoteEngine) -> None:
    """The last test here: the engine remembers it."""
    peer.context_tokens = 64
    with pytest.raises(PromptTooLongError) as caught:
        told(engine)
    assert caught.value.limit_tokens == 64 == engine.info.max_window_tokens


def test_one_that_breaks_off_what_is_too_long_is_asked_why(peer: Peer) -> None:
    peer.context_tokens = 1024
    engine = remote_engine(peer.url, api_key=KEY)
    peer.context_tokens, peer.breaks_when_long = 20, True
    with pytest.raises(PromptTooLongError):
        told(engine)
    peer.context_tokens, peer.breaks_when_long = 1024, False
    engine.close()


def test_an_older_server_that_refuses_to_count_in_streams(peer: Peer, tmp_path: Path) -> None:
    peer.context_tokens, peer.refuses_options = 1024, True
    engine = remote_engine(peer.url, api_key=KEY)
    assert last(told(engine)).text == "The scripted reply."
    peer.refuses_options = False
    engine.close()


def test_waits_grow_to_a_limit_and_end() -> None:
    backoff = Backoff(attempts=5, first_s=1, most_s=4)
    assert [backoff.next_s(None) for _ in range(6)] == [1, 2, 4, 4, 4, None]
    assert Backoff(attempts=5, first_s=1, most_s=4).next_s(3.0) == 3.0
    assert Backoff(attempts=5, first_s=1, most_s=4).next_s(60.0) is None


def test_the_page_says_it_in_korean(peer: Peer, tmp_path: Path) -> None:
    with pytest.raises(WrongKeyError) as caught:
        remote_engine(peer.url)
    for error in (lost("http://h"), silent("http://h", 9), unreachable("http://h"), caught.value):
        said = in_language("ko", str(error))
        assert re.search("[가-힣]", said) and "http://" in said
    for code in ("remote_too_long", "remote_asked_again", "remote_count", "remote_cached"):
        notice = Notice(code, "x", {"times": 2, "told": 3, "counted": 4})
        assert re.search("[가-힣]", notice_text("ko", notice))
