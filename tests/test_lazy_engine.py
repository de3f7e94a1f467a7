"""A loading engine can be asked, stopped, retried and closed in any state."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from itertools import islice
from threading import Event, Thread
from typing import Any

import pytest

from chatbot import parts
from chatbot.engine.again import Again, doubling_waits, server_may_come
from chatbot.engine.base import Engine, EngineStatus, Finished, SamplingParams
from chatbot.engine.lazy import LazyEngine, LoadHandle
from chatbot.engine.scripted import ScriptedEngine
from chatbot.engine.scripted_tokenizer import ScriptedTokenizer
from chatbot.errors import (
    EngineError,
    ModelError,
    NoAnswerError,
    RemoteError,
    SettingsError,
    TokenizerError,
    UntoldContextError,
    WrongKeyError,
)
from chatbot.settings import Settings

PROMPT = ScriptedTokenizer().encode("hello there")
PARAMS = SamplingParams(max_tokens=20)


class Factory:
    """Loads when told to, with what it is told to."""

    def __init__(self) -> None:
        self.go = Event()
        self.entered = Event()
        self.results: list[Engine | Exception] = []
        self.handles: list[LoadHandle] = []
        self.before: Callable[[LoadHandle], None] = lambda handle: None

    def __call__(self, handle: LoadHandle) -> Engine:
        self.handles.append(handle)
        self.before(handle)
        self.entered.set()
        assert self.go.wait(10)
        result = self.results.pop(0)
        if isinstance(result, Exception):
            raise result
        return result


@pytest.fixture
def factory() -> Factory:
    return Factory()


def in_thread(call: Callable[[], Any]) -> tuple[Thread, list[Any]]:
    results: list[Any] = []

    def run() -> None:
        try:
            results.append(call())
        except Exception as error:
            results.append(error)

    thread = Thread(target=run)
    thread.start()
    return thread, results


def test_calls_wait_for_the_load(factory: Factory) -> None:
    factory.results = [ScriptedEngine(["hi"], name="the one")]
    lazy = LazyEngine(factory)
    calls = [
        in_thread(lambda: lazy.info.model),
        in_thread(lambda: lazy.tokenizer.name),
        in_thread(lambda: list(lazy.generate(PROMPT, PARAMS))[-1]),
    ]
    assert factory.entered.wait(5)
    time.sleep(0.05)
    assert all(thread.is_alive() for thread, _ in calls)
    assert lazy.status.state == "loading"
    factory.go.set()
    for thread, _ in calls:
        thread.join(5)
    (model,), (tokenizer,), (last,) = (results for _, results in calls)
    assert (model, tokenizer) == ("the one", ScriptedTokenizer.name)
    assert isinstance(last, Finished) and last.text == "hi"
    assert lazy.status.state == "ready"


def test_progress_is_shown(factory: Factory) -> None:
    factory.before = lambda handle: handle("Reading weights.", 0.25)
    factory.results = [ScriptedEngine()]
    lazy = LazyEngine(factory, message="Looking for the model.")
    assert factory.entered.wait(5)
    assert (lazy.status.state, lazy.status.message) == ("loading", "Reading weights.")
    assert lazy.status.progress == 0.25
    factory.go.set()
    assert lazy.wait(5).state == "ready"
    factory.handles[0]("Too late.", 0.5)
    assert lazy.status.state == "ready"


def test_the_tokenizer_may_come_before_the_weights(factory: Factory) -> None:
    early = ScriptedTokenizer()
    factory.before = lambda handle: handle.offer_tokenizer(early)
    factory.results = [ModelError("No weights.")]
    lazy = LazyEngine(factory)
    assert lazy.tokenizer is early
    assert lazy.status.state == "loading"
    factory.go.set()
    assert lazy.wait(5).state == "failed"
    assert lazy.tokenizer is early, "prompts can still be counted"


def test_stop_ends_the_wait(factory: Factory) -> None:
    lazy = LazyEngine(factory)
    stop = Event()
    thread, results = in_thread(lambda: list(lazy.generate(PROMPT, PARAMS, stop=stop)))
    time.sleep(0.05)
    assert thread.is_alive()
    stop.set()
    thread.join(2)
    ((last,),) = results
    assert (last.finish, last.text) == ("cancelled", "")
    factory.results = [ScriptedEngine()]
    factory.go.set()


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (ModelError("The model is gated; log in."), "The model is gated; log in."),
        (TokenizerError("The tokenizer is damaged."), "The tokenizer is damaged."),
        (RuntimeError("size mismatch"), "The model cannot be loaded (RuntimeError: size mismatch)"),
    ],
)
def test_a_failed_load_is_told_to_everyone_and_can_be_retried(
    factory: Factory, error: Exception, sentence: str
) -> None:
    factory.results = [error, ScriptedEngine(["better"])]
    factory.go.set()
    lazy = LazyEngine(factory)
    status = lazy.wait(5)
    assert status.state == "failed" and status.message.startswith(sentence)
    for call in (
        lambda: lazy.info,
        lambda: lazy.tokenizer,
        lambda: list(lazy.generate(PROMPT, PARAMS)),
    ):
        with pytest.raises(ModelError) as caught:
            call()
        assert str(caught.value).startswith(sentence)
    lazy.reload()
    last = list(lazy.generate(PROMPT, PARAMS))[-1]
    assert isinstance(last, Finished) and last.text == "better"
    lazy.reload()
    assert len(factory.handles) == 2, "a ready engine was loaded again"


def test_reload_while_loading_does_nothing(factory: Factory) -> None:
    factory.results = [ScriptedEngine()]
    lazy = LazyEngine(factory)
    lazy.reload()
    factory.go.set()
    assert lazy.wait(5).state == "ready"
    assert len(factory.handles) == 1


def test_closing_while_loading_frees_the_late_engine(factory: Factory) -> None:
    late = ScriptedEngine()
    factory.results = [late]
    lazy = LazyEngine(factory)
    assert factory.entered.wait(5)
    thread, results = in_thread(lambda: list(lazy.generate(PROMPT, PARAMS)))
    lazy.close()
    lazy.close()
    thread.join(2)
    assert isinstance(results[0], EngineError) and "closed" in str(results[0])
    assert factory.handles[0].cancelled
    factory.go.set()
    deadline = time.monotonic() + 5
    while late.status.state == "ready" and time.monotonic() < deadline:
        time.sleep(0.01)
    assert late.status.state == "failed", "the engine that came late was never closed"
    assert lazy.status.state == "failed"


def test_closing_a_ready_and_a_failed_engine(factory: Factory) -> None:
    inner = ScriptedEngine()
    factory.results = [inner, ModelError("No.")]
    factory.go.set()
    ready, failed = LazyEngine(factory), LazyEngine(factory)
    engines = [ready, failed]
    for lazy in engines:
        lazy.wait(5)
        lazy.forget("x")
        lazy.close()
        lazy.reload()
        assert lazy.status.state == "failed"
        with pytest.raises(EngineError, match="closed"):
            _ = lazy.info
        with pytest.raises(EngineError, match="closed"):
            _ = lazy.tokenizer
    assert inner.status.state == "failed"


def test_closing_the_iterator_reaches_the_real_engine(factory: Factory) -> None:
    factory.results = [ScriptedEngine(["one two three", "next"])]
    factory.go.set()
    lazy = LazyEngine(factory)
    events = lazy.generate(PROMPT, PARAMS)
    next(events)
    events.close()  # type: ignore[attr-defined]
    last = list(lazy.generate(PROMPT, PARAMS))[-1]
    assert isinstance(last, Finished) and last.text == "next"


class Waits:
    """Each wait ends at once; what was to be waited is kept."""

    def __init__(self, *seconds: float) -> None:
        self.seconds = seconds
        self.begun = 0

    def __call__(self) -> Iterator[float]:
        for wait_s in self.seconds:
            self.begun += 1
            yield wait_s


def until(check: Callable[[], bool]) -> None:
    end = time.monotonic() + 20
    while not check():
        assert time.monotonic() < end
        time.sleep(0.005)


def loading() -> set[Thread]:
    return {thread for thread in threading.enumerate() if thread.name == "engine-load"}


def until_ready(lazy: LazyEngine) -> None:
    until(lambda: lazy.status.state == "ready")


def test_a_server_that_is_away_at_the_start_is_used_once_it_is_there(factory: Factory) -> None:
    factory.results = [NoAnswerError("Nobody."), RemoteError("No models."), ScriptedEngine(["hi"])]
    factory.go.set()
    waits = Waits(0.0, 0.0)
    lazy = LazyEngine(factory, again=Again(server_may_come, waits))
    until_ready(lazy)
    last = list(lazy.generate(PROMPT, PARAMS))[-1]
    assert isinstance(last, Finished) and last.text == "hi"
    assert (len(factory.handles), waits.begun) == (3, 2)


def test_between_the_tries_everybody_is_told_at_once_and_nobody_waits(factory: Factory) -> None:
    factory.results = [NoAnswerError("Nobody answers."), ScriptedEngine()]
    factory.go.set()
    # The second try hangs, as at a server that takes a connection and says nothing.
    factory.before = lambda handle: factory.go.clear() if len(factory.handles) == 2 else None
    lazy = LazyEngine(factory, again=Again(server_may_come, Waits(0.0)))
    until(lambda: len(factory.handles) == 2 and not factory.go.is_set())
    factory.handles[-1]("Asking.", 0.5)
    assert lazy.status == EngineStatus("failed", "Nobody answers.", again=True)
    with pytest.raises(ModelError, match="Nobody answers"):
        list(lazy.generate(PROMPT, PARAMS))
    factory.go.set()
    until_ready(lazy)


@pytest.mark.parametrize(
    "error",
    [
        ModelError("The weights are damaged."),
        SettingsError("Set --window-tokens."),
        WrongKeyError("The key is refused."),
        TokenizerError("The tokenizer is damaged."),
        RuntimeError("size mismatch"),
    ],
)
def test_what_does_not_pass_by_itself_is_not_tried_again(
    factory: Factory, error: Exception
) -> None:
    factory.results = [NoAnswerError("Nobody."), error, ScriptedEngine()]
    factory.go.set()
    before = loading()
    lazy = LazyEngine(factory, again=Again(server_may_come, Waits(0.0, 0.0, 0.0)))
    until(lambda: not lazy.status.again and lazy.status.state == "failed")
    for thread in loading() - before:
        thread.join(5)
    assert len(factory.handles) == 2 and len(factory.results) == 1


def test_a_context_that_may_be_told_later_is_a_server_that_may_come() -> None:
    assert server_may_come(UntoldContextError("It does not tell."))


def test_a_count_that_nobody_answers_is_a_server_that_may_come() -> None:
    try:
        raise TokenizerError("It does not count.") from NoAnswerError("Nobody.")
    except TokenizerError as error:
        assert server_may_come(error)


def test_a_local_model_is_loaded_once(factory: Factory, monkeypatch: pytest.MonkeyPatch) -> None:
    assert load_engine_plan(Settings(), monkeypatch) is None
    plan = load_engine_plan(Settings(engine_url="http://127.0.0.1:9/v1"), monkeypatch)
    assert plan is not None and plan.may_help(NoAnswerError("Nobody."))


def load_engine_plan(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Again | None:
    """What the program gives an engine of these settings for its further tries."""
    given: dict[str, Any] = {}
    monkeypatch.setattr(parts, "LazyEngine", lambda load, **named: given.update(named))
    parts.load_engine(settings)
    return given.get("again")


def test_the_waits_grow_and_stay_short() -> None:
    assert list(islice(doubling_waits(), 7)) == [1.0, 2.0, 4.0, 8.0, 15.0, 15.0, 15.0]


@pytest.mark.parametrize("ends", ["close", "reload"])
def test_a_wait_for_the_next_try_ends_with_the_engine_or_a_try_by_hand(
    factory: Factory, ends: str
) -> None:
    factory.results = [NoAnswerError("Nobody."), ScriptedEngine()]
    factory.go.set()
    before = loading()
    lazy = LazyEngine(factory, again=Again(server_may_come, Waits(3600.0, 0.0)))
    until(lambda: lazy.status.again)
    (waiting,) = loading() - before
    getattr(lazy, ends)()
    waiting.join(5)
    assert not waiting.is_alive(), "somebody still waits for a try that nobody wants"
    if ends == "reload":
        until_ready(lazy)
    assert len(factory.handles) == {"close": 1, "reload": 2}[ends]
    lazy.close()
