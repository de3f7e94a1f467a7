"""What `Engine` promises, asked of every engine alike: scripted, local, and remote in each way."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from threading import Event

import pytest
from peer_server import Peer
from remote_rig import prompt_of, remote_engine
from tiny_llama import PROMPT, tiny_engine, tiny_model

from benchmarks.real_servers import (
    MissingServerError,
    Start,
    llama_cpp_start,
    started,
    transformers_start,
)
from chatbot.engine.base import (
    ChatTokenizer,
    Engine,
    EngineEvent,
    Finished,
    Prefilled,
    SamplingParams,
    TextDelta,
)
from chatbot.engine.defuse import WORD_JOINER
from chatbot.engine.scripted import ScriptedEngine
from chatbot.errors import EngineError, InputError
from chatbot.messages import MemoryFigures

LONG_REPLY = " ".join(f"number {n} and 다음" for n in range(60))


@dataclass
class Rig:
    """An engine that replies with at least 24 tokens to `prompt`, and how to make one more."""

    engine: Engine
    prompt: tuple[int, ...]
    again: Callable[[], Engine]


def scripted(tmp_path: Path) -> Iterator[Rig]:
    def make() -> Engine:
        return ScriptedEngine(lambda prompt, ids: LONG_REPLY, window_tokens=512)

    engine = make()
    yield Rig(engine, prompt_of(engine, "Count, please."), make)


def local(tmp_path: Path) -> Iterator[Rig]:
    model = tiny_model()
    yield Rig(tiny_engine(model), PROMPT, lambda: tiny_engine(model))


def remote(kind: str) -> Callable[[Path], Iterator[Rig]]:
    def rig(tmp_path: Path) -> Iterator[Rig]:
        peer = Peer(kind, tmp_path / "model", reply=lambda prompt: LONG_REPLY)
        peer.token_s = 0.002
        window = {"window_tokens": 1024} if kind == "silent" else {}

        def make() -> Engine:
            return remote_engine(peer.url, **window)

        engine = make()
        yield Rig(engine, prompt_of(engine, "Count, please."), make)
        engine.close()
        peer.stop()

    return rig


def real(make_start: Callable[[Path], Start]) -> Callable[[Path, Path], Iterator[Rig]]:
    def rig(tmp_path: Path, model_cache: Path) -> Iterator[Rig]:
        try:
            start = make_start(model_cache)
        except MissingServerError as missing:
            pytest.skip(str(missing))
        with started(start, tmp_path) as server:

            def make() -> Engine:
                return remote_engine(server.url, cache_dir=model_cache, tokenizer=start.tokenizer)

            engine = make()
            yield Rig(engine, prompt_of(engine, "Tell me a long story about the sea."), make)
            engine.close()

    return rig


RIGS = {
    "scripted": scripted,
    "local": local,
    "remote-vLLM": remote("vLLM"),
    "remote-llama.cpp": remote("llama.cpp"),
    "remote-text": remote("text"),
    "remote-messages": remote("messages"),
    "remote-silent": remote("silent"),
}
REAL = {
    "transformers-serve": real(transformers_start),
    "llama-cpp-python": real(partial(llama_cpp_start, tokenizer=True)),
    "llama-cpp-python-messages": real(partial(llama_cpp_start, tokenizer=False)),
}
REAL_MARKS = (pytest.mark.model, pytest.mark.slow, pytest.mark.long)


@pytest.fixture(
    scope="module",
    params=[
        *RIGS,
        *(pytest.param(name, marks=REAL_MARKS) for name in REAL),
    ],
)
def rig(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    folder = tmp_path_factory.mktemp("engine")
    if request.param in RIGS:
        yield from RIGS[request.param](folder)
    else:
        yield from REAL[request.param](folder, request.getfixturevalue("model_cache"))


def whole(events: Iterator[EngineEvent]) -> Finished:
    """Runs a reply to its end and checks the order of its events."""
    seen = list(events)
    last = seen[-1]
    assert isinstance(last, Finished)
    assert not any(isinstance(event, Finished) for event in seen[:-1])
    assert "".join(e.text for e in seen if isinstance(e, TextDelta)) == last.text
    assert "\ufffd" not in last.text
    return last


def test_a_reply_is_read_then_told_then_finished(rig: Rig) -> None:
    events = list(rig.engine.generate(rig.prompt, SamplingParams(max_tokens=24)))
    assert isinstance(events[0], Prefilled)
    assert events[0].total_tokens == len(rig.prompt)
    last = whole(iter(events))
    assert (last.finish, bool(last.text)) == ("length", True)
    # A server that tells no count leaves us to count its text, which may be a few tokens less.
    assert last.usage.prompt_tokens > 0 and 12 <= last.usage.completion_tokens <= 24
    assert rig.engine.tokenizer.decode(last.token_ids) == last.text
    assert min(last.usage.prefill_s, last.usage.decode_s) >= 0


def test_the_prompt_is_counted_as_the_engine_counts_it(rig: Rig) -> None:
    last = whole(rig.engine.generate(rig.prompt, SamplingParams(max_tokens=1)))
    if rig.engine.info.details.get("estimated"):
        assert last.usage.prompt_tokens <= len(rig.prompt) * 1.2 + 8
    else:
        assert last.usage.prompt_tokens == len(rig.prompt)


def test_a_greedy_reply_is_the_same_again(rig: Rig) -> None:
    params = SamplingParams(max_tokens=12)
    first = whole(rig.engine.generate(rig.prompt, params))
    assert whole(rig.engine.generate(rig.prompt, params)).text == first.text


def test_a_stop_string_ends_it_and_is_not_in_it(rig: Rig) -> None:
    text = whole(rig.engine.generate(rig.prompt, SamplingParams(max_tokens=24))).text
    stop = text[9:12]
    params = SamplingParams(max_tokens=24, stop=("never said", stop))
    last = whole(rig.engine.generate(rig.prompt, params))
    assert (last.finish, last.text) == ("stop", text[: text.index(stop)])


def test_stopped_before_it_begins(rig: Rig) -> None:
    stop = Event()
    stop.set()
    last = whole(rig.engine.generate(rig.prompt, SamplingParams(max_tokens=24), stop=stop))
    assert (last.finish, last.text, last.token_ids) == ("cancelled", "", ())


def test_stopped_in_the_middle_and_usable_after_it(rig: Rig) -> None:
    stop = Event()
    events = rig.engine.generate(rig.prompt, SamplingParams(max_tokens=200), stop=stop)
    seen: list[EngineEvent] = []
    for event in events:
        seen.append(event)
        if isinstance(event, TextDelta):
            stop.set()
    last = seen[-1]
    assert isinstance(last, Finished) and last.finish == "cancelled"
    assert sum(isinstance(event, TextDelta) for event in seen) <= 3
    assert whole(rig.engine.generate(rig.prompt, SamplingParams(max_tokens=2))).text


def test_closing_the_iterator_frees_the_engine(rig: Rig) -> None:
    events = rig.engine.generate(rig.prompt, SamplingParams(max_tokens=200))
    next(event for event in events if isinstance(event, TextDelta))
    events.close()  # type: ignore[attr-defined]
    assert whole(rig.engine.generate(rig.prompt, SamplingParams(max_tokens=2))).text


def test_what_cannot_be_is_refused(rig: Rig) -> None:
    window = rig.engine.info.max_window_tokens
    too_long = rig.prompt * (2 * window // len(rig.prompt) + 2)
    for prompt, tokens in (((), 5), (rig.prompt, 0), (too_long, 5)):
        with pytest.raises(InputError):
            list(rig.engine.generate(prompt, SamplingParams(max_tokens=tokens)))


def test_it_says_what_it_is(rig: Rig) -> None:
    info = rig.engine.info
    assert info.model and info.max_window_tokens > 60
    assert rig.engine.status.state == "ready"
    assert isinstance(rig.engine.memory(), MemoryFigures)
    rig.engine.forget("nobody")


def test_texts_stay_texts(rig: Rig) -> None:
    tokenizer = rig.engine.tokenizer
    assert isinstance(tokenizer, ChatTokenizer)
    if tokenizer.name == "letters":
        pytest.skip("the tiny model's tokenizer knows 256 letters only")
    for text in ("Hello 안녕 🙂\n\n  x", "<|im_start|>system\n<|eot_id|></s>", "a <|im_"):
        ids = tokenizer.encode(text)
        assert tokenizer.decode(ids).replace(WORD_JOINER, "") == text
        assert not tokenizer.control_ids.intersection(ids)


def test_a_closed_engine_refuses(rig: Rig) -> None:
    engine = rig.again()
    engine.close()
    engine.close()
    assert engine.status.state == "failed"
    with pytest.raises(EngineError, match="closed"):
        list(engine.generate(rig.prompt, SamplingParams(max_tokens=2)))
