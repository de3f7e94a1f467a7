"""Exchanging the model while the program runs, with scripted models."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from chatbot.chat import Chat, ContextReady, TurnDone
from chatbot.engine.base import Engine, Finished, SamplingParams, TextDelta
from chatbot.engine.cache_folder import Progress
from chatbot.engine.exchange import Exchangeable, in_use
from chatbot.engine.lazy import LazyEngine, LoadHandle
from chatbot.engine.owned import OwnedEngine
from chatbot.engine.scripted import Scripted, ScriptedEngine, ScriptedReply
from chatbot.engine.scripted_tokenizer import ScriptedTokenizer
from chatbot.engine.switching import SwitchingEngine
from chatbot.errors import InputError, ModelError
from chatbot.messages import Conversation
from chatbot.settings import Settings
from chatbot.store import Store

SLOW = ScriptedReply("one two three four", tokens_per_s=20, ends_itself=False)


def until(check: Callable[[], bool], limit_s: float = 30.0) -> None:
    end = time.monotonic() + limit_s
    while not check():
        assert time.monotonic() < end
        time.sleep(0.005)


class Rig:
    """A switching engine whose loads and files a test lets through one by one."""

    def __init__(self, script: dict[str, Scripted] | None = None) -> None:
        self.script = script or {}
        self.loads: list[str] = []
        self.closed: list[str] = []
        self.may_load = threading.Event()
        self.may_load.set()
        self.done: list[Settings | None] = []
        self.engine = SwitchingEngine(Settings(model="old"), load=self.load, prepare=self.prepare)
        self.ready()

    def load(self, settings: Settings) -> Engine:
        rig, name = self, settings.model

        class Named(ScriptedEngine):
            def close(self) -> None:
                rig.closed.append(name)
                super().close()

        class Words(ScriptedTokenizer):
            name = f"words of {settings.model}"

        def load(handle: LoadHandle) -> Engine:
            handle(f"Reading {name}.", 0.5)
            assert self.may_load.wait(30)
            if name == "broken":
                raise ModelError("The weights of 'broken' are damaged; get them again.")
            reply = self.script.get(name, f"I am {name}.")
            return Named(lambda *_: reply, name=name, tokenizer=Words())

        self.loads.append(name)
        return LazyEngine(load)

    def prepare(self, settings: Settings, progress: Progress) -> None:
        progress(f"Getting {settings.model}.", 0.25)
        if settings.model == "nowhere":
            raise ModelError("There is no model 'nowhere'; check its name.")

    def switch(self, name: str) -> bool:
        return self.engine.switch_to(Settings(model=name), self.done.append)

    def ready(self) -> None:
        until(lambda: self.engine.status.state == "ready")

    def ended(self) -> str:
        until(lambda: bool(self.done))
        until(lambda: not (self.engine.switch and self.engine.switch.is_running))
        assert self.engine.switch
        return self.engine.switch.message


@pytest.fixture
def rig() -> Rig:
    return Rig()


def say(engine: Engine, stop: threading.Event | None = None) -> Finished:
    *_, last = engine.generate([1, 2], SamplingParams(max_tokens=50), stop=stop)
    assert isinstance(last, Finished)
    return last


def in_thread(work: Callable[[], Any]) -> tuple[threading.Thread, list[Any]]:
    results: list[Any] = []
    thread = threading.Thread(target=lambda: results.append(work()))
    thread.start()
    return thread, results


def test_another_model_takes_over_and_the_old_one_is_freed(rig: Rig) -> None:
    assert isinstance(rig.engine, Exchangeable) and say(rig.engine).text == "I am old."
    assert rig.switch("new") and rig.ended() == ""
    assert say(rig.engine).text == "I am new." and rig.engine.info.model == "new"
    assert rig.loads == ["old", "new"] and rig.closed == ["old"]
    assert [settings and settings.model for settings in rig.done] == ["new"]


def test_a_model_that_cannot_be_had_changes_nothing(rig: Rig) -> None:
    assert rig.switch("nowhere")
    assert rig.ended() == "There is no model 'nowhere'; check its name."
    assert rig.loads == ["old"] and rig.closed == [] and rig.done == [None]
    assert say(rig.engine).text == "I am old."


def test_when_the_load_fails_the_old_model_comes_back_for_those_who_wait(rig: Rig) -> None:
    rig.may_load.clear()
    assert rig.switch("broken")
    until(lambda: rig.loads == ["old", "broken"])
    until(lambda: rig.engine.status.message == "Reading broken.")
    assert rig.engine.status.state == "loading" and not rig.switch("third")

    def ask() -> str:
        with in_use(rig.engine):
            return say(rig.engine).text

    thread, said = in_thread(ask)
    rig.may_load.set()
    assert rig.ended() == "The weights of 'broken' are damaged; get them again."
    thread.join(30)
    assert said == ["I am old."] and rig.loads == ["old", "broken", "old"] and rig.done == [None]


def test_a_reply_in_the_making_ends_on_the_model_of_its_prompt() -> None:
    rig = Rig({"old": SLOW})
    stop, began = threading.Event(), threading.Event()

    def ask() -> tuple[str, str]:
        with in_use(rig.engine):
            before = rig.engine.tokenizer.name
            began.set()
            say(rig.engine, stop)
            return before, rig.engine.tokenizer.name

    thread, names = in_thread(ask)
    assert began.wait(30) and rig.switch("new")
    until(lambda: bool(rig.engine.switch and rig.engine.switch.phase == "ending"))
    assert rig.engine.status.state == "loading" and rig.closed == []
    stop.set()
    thread.join(30)
    assert names == [("words of old", "words of old")]
    assert rig.ended() == "" and rig.engine.tokenizer.name == "words of new"


def test_waiting_for_another_model_can_be_stopped(rig: Rig) -> None:
    rig.may_load.clear()
    rig.switch("new")
    until(lambda: rig.engine.status.state == "loading")
    stop = threading.Event()
    stop.set()
    mine = OwnedEngine(rig.engine, "anna")
    with pytest.raises(InputError, match="Another model"), in_use(mine, stop):
        pass
    rig.may_load.set()
    rig.ended()


def test_a_reply_in_passing_keeps_the_model_that_its_prompt_was_made_for(tmp_path: Path) -> None:
    rig = Rig({"old": SLOW})
    settings = Settings(data_dir=tmp_path, model="old", embedding_model="none")
    store = Store(tmp_path / "chats.db")
    chat = Chat(settings=settings, store=store, engine=rig.engine)
    stop = threading.Event()
    events = chat.answer(Conversation("given"), "Who are you?", stop=stop)
    assert isinstance(next(events), ContextReady)
    # The prompt is made and nothing of it generated: the gap into which an exchange would fall.
    assert rig.switch("new")
    until(lambda: bool(rig.engine.switch and rig.engine.switch.phase == "ending"))
    assert rig.loads == ["old"]
    assert isinstance(next(events), TextDelta)
    stop.set()
    *_, last = events
    assert isinstance(last, TurnDone) and last.turn.tokenizer_name == "words of old"
    assert rig.ended() == "" and rig.loads == ["old", "new"]
    *_, last = chat.answer(Conversation("given"), "Who are you?")
    assert isinstance(last, TurnDone) and last.turn.reply == "I am new."
    chat.close()
    store.close()


def test_closing_gives_an_exchange_up(rig: Rig) -> None:
    rig.may_load.clear()
    rig.switch("new")
    until(lambda: rig.loads == ["old", "new"])
    rig.engine.close()
    rig.may_load.set()
    until(lambda: rig.closed == ["old", "new"])
    assert rig.engine.status.state == "failed" and rig.done == []


def test_a_chat_goes_on_with_the_words_of_the_new_model(rig: Rig, tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path, model="old", embedding_model="none")
    store = Store(tmp_path / "chats.db")
    chat = Chat(settings=settings, store=store, engine=rig.engine)
    cid = store.create_conversation().id
    for name in ("old", "new"):
        *_, last = chat.reply(cid, "Who are you?")
        assert isinstance(last, TurnDone) and last.turn.reply == f"I am {name}."
        assert last.turn.tokenizer_name == f"words of {name}"
        chat.wait_for_folds(30)
        if name == "old":
            rig.switch("new")
            rig.ended()
    chat.close()
    store.close()
