"""Whole conversations at a server: nothing is lost, shrinking is said, reuse and estimates show."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from cli import inside
from peer_server import Fault, Peer
from regress_tools import write
from remote_rig import remote_engine

from chatbot.chat import ContextReady, NoticeEvent, TextDelta, TurnDone
from chatbot.engine import again, remote_reply
from chatbot.engine.base import EngineStatus
from chatbot.errors import InputError, ModelError
from chatbot.interchange import trace_record
from chatbot.messages import Turn
from chatbot.operations import readiness
from chatbot.services import Services, build_services
from chatbot.settings import Settings
from chatbot.ui.machine_html import Machine, machine_html
from chatbot.ui.prompt_html import counts_line, trace_html

KEY = "sk-very-secret-0123456789"
DOCUMENT = "".join(
    f"Room {n} of the house has {n + 2} windows. 방 {n}에는 창이 {n + 2}개 있다. "
    for n in range(60)
)


@pytest.fixture(autouse=True)
def no_long_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote_reply, "FIRST_WAIT_S", 0.01)


class Rig:
    """The whole program at a server."""

    def __init__(self, folder: Path, kind: str, **options: object) -> None:
        self.peer = Peer(kind, folder / "peer", key=KEY, context_tokens=1024)
        given = {"data_dir": folder / "data", "embedding_model": "none", "window_tokens": 1024}
        given |= {"engine_url": self.peer.url, "api_key": KEY, "chunk_min_tokens": 60}
        self.settings = Settings(**(given | {"chunk_max_tokens": 120} | options))  # type: ignore[arg-type]
        self.open()

    def open(self) -> None:
        self.services: Services = build_services(self.settings)
        ids = [info.id for info in self.services.store.list_conversations()]
        self.id = ids[0] if ids else self.services.store.create_conversation().id

    def ask(self, text: str) -> Turn:
        events = list(self.services.chat.reply(self.id, text))
        assert isinstance(events[-1], TurnDone)
        self.notices = [e.notice.code for e in events if isinstance(e, NoticeEvent)]
        self.prompts = [e.trace for e in events if isinstance(e, ContextReady)]
        self.told = "".join(e.text for e in events if isinstance(e, TextDelta))
        return events[-1].turn

    def close(self) -> None:
        self.services.close()
        self.peer.stop()


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    rig = Rig(tmp_path, "vLLM")
    yield rig
    rig.close()


@pytest.mark.parametrize("kind", ["vLLM", "text"])
def test_a_server_that_dies_in_mid_reply_and_comes_back_loses_nothing(
    tmp_path: Path, kind: str
) -> None:
    rig = Rig(tmp_path, kind)
    rig.ask("First?")
    rig.peer.faults = [Fault(drop_after=6)]
    broken = rig.ask("Second?")
    assert broken.finish == "error" and broken.reply
    assert broken.reply == rig.told and "The scripted reply.".startswith(broken.reply)
    assert "reply_failed" in rig.notices
    rig.peer.stop()
    if kind == "vLLM":
        # It cannot even be counted: nothing is stored, and whoever asked keeps the question.
        with pytest.raises(InputError, match="No server answers"):
            rig.ask("Third?")
    else:
        failed = rig.ask("Third?")
        assert failed.finish == "error" and not failed.reply
    rig.services.close()
    rig.peer.start()
    rig.open()
    again = rig.ask("Fourth?")
    assert (again.finish, again.reply) == ("stop", "The scripted reply.")
    turns = rig.services.store.load(rig.id).turns
    asked = ["First?", "Second?", *(["Third?"] if kind == "text" else []), "Fourth?"]
    assert [t.question for t in turns] == asked
    assert turns[1].reply == broken.reply
    rig.close()


def test_a_prompt_that_is_too_long_is_made_shorter_once_and_it_is_said(rig: Rig) -> None:
    for number in range(8):
        rig.ask(f"Remark {number}: the house has a red door and nine windows. " * 3)
    rig.peer.faults = [Fault(400, f"maximum context length is {n} tokens") for n in (900, 800)]
    refused = rig.ask("Twice too long?")
    assert refused.finish == "error", "it was shortened again and again"
    rig.peer.context_tokens = 500
    turn = rig.ask("And now?")
    assert (turn.finish, turn.reply) == ("stop", "The scripted reply.")
    assert "remote_too_long" in rig.notices
    assert "remote_too_long" in [notice.code for notice in turn.notices]
    first, second = rig.prompts
    assert second.prompt_tokens + second.reply_tokens <= 500 < first.prompt_tokens + 512
    assert turn.trace is not None and turn.trace.prompt_tokens == second.prompt_tokens
    assert "remote_too_long" not in [n.code for n in rig.ask("And then?").notices]


def test_a_prefix_that_stays_is_in_the_servers_cache_and_the_trace_says_so(rig: Rig) -> None:
    first = rig.ask("What is the house like?")
    second = rig.ask("And the door?")
    assert first.trace and second.trace and second.usage
    assert second.trace.reused_tokens >= first.trace.prompt_tokens
    assert second.usage.cached_tokens == second.trace.reused_tokens
    assert "%" in counts_line("en", second.trace)


@pytest.mark.parametrize("kind", ["vLLM", "text"])
def test_a_long_conversation_with_folds_and_documents_is_counted_exactly(
    tmp_path: Path, kind: str
) -> None:
    rig = Rig(tmp_path, kind, summary="extractive", fold_turns=2)
    file = tmp_path / "house.txt"
    file.write_text(DOCUMENT, encoding="utf-8")
    report = rig.services.library.ingest(file)
    assert report.document_id is not None
    rig.services.store.set_documents(rig.id, [report.document_id])
    for number in range(9):
        rig.peer.reply = lambda prompt, n=number: f"Room {n} has {n + 2} windows. 창이 많다. " * 3
        turn = rig.ask(f"How many windows has room {number}? 창은 몇 개? <|eot_id|>")
        assert turn.finish == "stop" and turn.trace and turn.usage
        assert turn.trace.prompt_tokens == turn.usage.prompt_tokens
        assert sum(s.tokens for s in turn.trace.segments) == turn.trace.prompt_tokens
        assert not turn.trace.estimated
        rig.services.chat.wait_for_folds(60)
    conversation = rig.services.store.load(rig.id)
    assert conversation.summary and conversation.summary.covers >= 4
    assert not rig.services.engine.info.details["estimated"]
    rig.close()


def test_estimates_are_marked_wherever_tokens_are_shown(tmp_path: Path) -> None:
    rig = Rig(tmp_path, "silent")
    turn = rig.ask("Hello?")
    assert turn.trace is not None and turn.trace.estimated
    assert trace_record(turn.trace)["estimated"] is True
    assert "estimated" in counts_line("en", turn.trace) and "추정" in counts_line("ko", turn.trace)
    assert "estimated" in trace_html("en", turn.trace)
    stored = rig.services.store.load_trace(turn.id)
    assert stored is not None and stored.estimated
    machine = Machine(EngineStatus("ready"), rig.services.engine.info, 800)
    figures = rig.services.engine.memory()
    assert figures.process_bytes > 0 == figures.kv_bound_bytes, "a cache that is not here"
    page = machine_html("en", machine, (), {})
    assert rig.peer.url in page and "estimated" in page
    rig.close()


def test_the_key_is_in_nothing_that_is_kept(rig: Rig) -> None:
    rig.ask("Hello?")
    rig.services.close()
    kept = [path for path in rig.settings.data_dir.rglob("*") if path.is_file()]
    assert kept and not any(KEY.encode() in path.read_bytes() for path in kept)
    assert KEY not in repr(rig.settings) and KEY not in rig.settings.model_dump_json()
    rig.open()


def test_commands_speak_of_the_server(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CHATBOT_API_KEY", KEY)
    at = ("--engine-url", rig.peer.url, "--embedding-model", "none")
    shown = inside("context", "--question", "Where?", "--json", *at)
    assert shown.code == 0 and shown.lines[0]["limit_tokens"] == 1024 - 256
    for command in (("plan",), ("bench", "turns")):
        refused = inside(*command, "--engine-url", rig.peer.url)
        assert refused.code == 2 and "--engine-url" in refused.err
    monkeypatch.setenv("CHATBOT_API_KEY", "wrong")
    assert "does not take the key" in inside("context", "--question", "Where?", *at).err


def test_suites_run_at_a_server(rig: Rig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CHATBOT_API_KEY", KEY)
    suite = write(
        tmp_path,
        "  - id: said\n    why: It runs at a server.\n    turns:\n"
        "      - {user: Hello., assert: [contains: scripted, prompt-tokens: 500]}\n"
        "      - {user: Go on., assert: [reused-share: 0.3]}\n",
    )
    saved = tmp_path / "run.json"
    at = ("--engine-url", rig.peer.url, "--embedding-model", "none", "--window-tokens", "1024")
    outcome = inside("regress", str(suite), "--save", str(saved), *at)
    assert outcome.code == 0, outcome.out + outcome.err
    assert KEY not in saved.read_text(encoding="utf-8")


def test_a_failed_start_can_be_tried_again(tmp_path: Path) -> None:
    peer = Peer("vLLM", tmp_path / "peer")
    peer.stop()
    settings = Settings(data_dir=tmp_path, engine_url=peer.url, embedding_model="none")
    with closing(build_services(settings)) as services:
        engine = services.engine
        with pytest.raises(ModelError, match="start it"):
            _ = engine.info
        assert engine.status.state == "failed" and "start it" in engine.status.message
        peer.start()
        engine.reload()  # type: ignore[attr-defined]
        assert engine.info.device == "vLLM"
    with closing(remote_engine(peer.url)) as engine:
        assert engine.info.device == "vLLM"
    peer.stop()


@pytest.mark.parametrize("kind", ["vLLM", "llama.cpp"])
def test_a_program_that_starts_before_its_server_becomes_ready_by_itself(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """vLLM listens when its model is there, llama.cpp while it still reads it."""
    monkeypatch.setattr(again, "FIRST_WAIT_S", 0.02)
    monkeypatch.setattr(again, "MOST_WAIT_S", 0.02)
    peer = Peer(kind, tmp_path / "peer")
    peer.is_loading = True
    if kind == "vLLM":
        peer.stop()
    settings = Settings(data_dir=tmp_path, engine_url=peer.url, embedding_model="none")
    with closing(build_services(settings)) as services:
        chat_id = services.store.create_conversation().id
        with pytest.raises(ModelError, match=r"start it|loads its model"):
            list(services.chat.reply(chat_id, "Who are you?"))
        assert readiness(services).parts["engine"] == "failed" and services.engine.status.again
        if kind == "vLLM":
            peer.start()
        peer.is_loading = False
        end = time.monotonic() + 60
        while not readiness(services).is_ready:
            assert time.monotonic() < end, services.engine.status
            time.sleep(0.01)
        *_, done = services.chat.reply(chat_id, "Who are you?")
        assert isinstance(done, TurnDone) and done.turn.reply == "The scripted reply."
    peer.stop()
