"""The real engine around a tiny random model: equal to the library, stoppable, never stuck."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from tiny_llama import END_ID, START_ID, tiny_engine, tiny_model

from chatbot.engine.base import EngineEvent, Finished, Prefilled, SamplingParams, TextDelta
from chatbot.engine.decode import Reader
from chatbot.engine.local import TransformersEngine, new_cache
from chatbot.errors import EngineError, InputError, OutOfMemoryError

PROMPT = (START_ID, *(f"{n} little words".encode()[n % 14] for n in range(70)))


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    """Waiting for a second thread takes longer than the work of so small a model."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def model() -> Any:
    return tiny_model()


@pytest.fixture
def engine(model: Any) -> TransformersEngine:
    return tiny_engine(model)


def finished(events: Iterator[EngineEvent]) -> Finished:
    last = list(events)[-1]
    assert isinstance(last, Finished)
    return last


def reply(engine: TransformersEngine, prompt: tuple[int, ...] = PROMPT, **params: Any) -> Finished:
    return finished(engine.generate(prompt, SamplingParams(**{"max_tokens": 40, **params})))


def library_reply(
    model: Any, prompt: tuple[int, ...], max_tokens: int, **options: Any
) -> list[int]:
    ids = torch.tensor([prompt])
    out = model.generate(
        ids, attention_mask=torch.ones_like(ids), max_new_tokens=max_tokens, do_sample=False,
        **options,
    )  # fmt: skip
    new: list[int] = out[0, len(prompt) :].tolist()
    return new[: new.index(END_ID)] if END_ID in new else new


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("penalty", [1.0, 1.3])
def test_greedy_equals_the_library(dtype: str, penalty: float) -> None:
    for seed in range(3):
        model = tiny_model(seed=seed, dtype=dtype)
        engine = tiny_engine(model, piece_tokens=512)
        ours = reply(engine, repetition_penalty=penalty).token_ids
        assert list(ours) == library_reply(model, PROMPT, 40, repetition_penalty=penalty)


def test_pieces_give_the_same_logits_as_one_pass(model: Any) -> None:
    whole = model(torch.tensor([PROMPT])).logits[0, -1]
    for piece_tokens in (1, 7, 16, len(PROMPT) - 1, len(PROMPT), 512):
        reader = Reader(model, new_cache(model), ())
        *_, (done, logits) = reader.prefill(PROMPT, piece_tokens=piece_tokens)
        assert done == len(PROMPT)
        torch.testing.assert_close(logits, whole, atol=1e-4, rtol=1e-4)
        assert reader.cache.get_seq_length() == len(PROMPT) == len(reader.token_ids)


def test_progress_of_prefill_is_told(engine: TransformersEngine) -> None:
    events = list(engine.generate(PROMPT, SamplingParams(max_tokens=1)))
    assert [e.done_tokens for e in events if isinstance(e, Prefilled)] == [16, 32, 48, 64, 71]


def test_text_events_join_to_the_text(engine: TransformersEngine) -> None:
    events = list(engine.generate(PROMPT, SamplingParams(max_tokens=40)))
    last = events[-1]
    assert isinstance(last, Finished)
    assert "".join(e.text for e in events if isinstance(e, TextDelta)) == last.text != ""
    assert last.usage.prompt_tokens == len(PROMPT)
    assert last.usage.completion_tokens == 40 == len(last.token_ids)
    assert last.usage.prefill_s > 0 < last.usage.decode_s


def test_end_token_ends_and_is_not_in_the_reply(model: Any) -> None:
    first = reply(tiny_engine(model)).token_ids
    engine = tiny_engine(model)
    engine._stop_ids = frozenset({first[5]})
    stopped = reply(engine)
    assert stopped.finish == "stop"
    assert stopped.token_ids == first[: first.index(first[5])]


@pytest.mark.parametrize("model_ends", [(7,), (END_ID, 7)])
def test_every_end_token_of_the_model_counts(model: Any, model_ends: tuple[int, ...]) -> None:
    engine = tiny_engine(model)
    loaded = engine._loaded
    assert loaded is not None
    from dataclasses import replace

    again = TransformersEngine(replace(loaded, end_ids=model_ends), engine.tokenizer)
    assert again._stop_ids >= {7, END_ID}


def test_stop_string_is_cut_off(engine: TransformersEngine) -> None:
    text = reply(engine).text
    stop = text[9:11]
    stopped = reply(engine, stop=("never", stop))
    assert stopped.finish == "stop"
    assert stopped.text == text[: text.index(stop)]


def test_sampling_is_repeatable_by_seed_and_private(engine: TransformersEngine) -> None:
    hot = {"temperature": 1.5, "top_p": 0.95}
    first = reply(engine, seed=3, **hot).token_ids
    torch.manual_seed(99)
    before = torch.random.get_rng_state()
    assert reply(engine, seed=3, **hot).token_ids == first
    assert torch.equal(torch.random.get_rng_state(), before)
    assert reply(engine, seed=4, **hot).token_ids != first
    assert reply(engine, **hot).token_ids != reply(engine, **hot).token_ids


def test_no_share_left_or_no_temperature_is_greedy(engine: TransformersEngine) -> None:
    greedy = reply(engine).token_ids
    assert reply(engine, temperature=2.0, top_p=0.0).token_ids == greedy
    assert reply(engine, temperature=0, seed=5).token_ids == greedy
    assert reply(engine, temperature=1, top_p=1e-9, seed=5).token_ids == greedy


def test_stop_during_decoding_ends_within_two_tokens(engine: TransformersEngine) -> None:
    stop = threading.Event()
    after = 0
    for event in engine.generate(PROMPT, SamplingParams(max_tokens=300), stop=stop):
        if isinstance(event, TextDelta):
            after += stop.is_set()
            stop.set()
    assert isinstance(event, Finished)
    assert event.finish == "cancelled"
    assert after <= 2
    assert event.usage.completion_tokens <= 3


def test_stop_inside_a_piece_of_prefill(model: Any) -> None:
    engine = tiny_engine(model, piece_tokens=512)
    stop = threading.Event()
    hook = model.model.layers[0].register_forward_hook(lambda *_: stop.set())
    try:
        last = finished(engine.generate(PROMPT, SamplingParams(max_tokens=9), stop=stop))
    finally:
        hook.remove()
    assert (last.finish, last.text) == ("cancelled", "")
    assert last.usage.prefill_s > 0
    assert reply(engine).token_ids == reply(tiny_engine(model)).token_ids


def test_stop_before_anything(engine: TransformersEngine) -> None:
    stop = threading.Event()
    stop.set()
    last = finished(engine.generate(PROMPT, SamplingParams(max_tokens=40), stop=stop))
    assert (last.finish, last.token_ids) == ("cancelled", ())


def test_a_stopped_call_leaves_the_cache_as_before(model: Any) -> None:
    from chatbot.engine.decode import StopGate, Stopped

    gate = StopGate(model)
    reader = Reader(model, new_cache(model), ())
    reader.read(PROMPT[:20])
    calls = iter([False, True])
    gate.watch(lambda: next(calls))
    with pytest.raises(Stopped):
        reader.read(PROMPT[20:])
    gate.unwatch()
    assert [layer.get_seq_length() for layer in reader.cache.layers] == [20, 20]
    again = reader.read(PROMPT[20:])
    torch.testing.assert_close(
        again, model(torch.tensor([PROMPT])).logits[0, -1], atol=1e-4, rtol=1e-4
    )


@pytest.mark.parametrize("events_taken", [0, 1, 8])
def test_closing_the_iterator_frees_the_engine(
    engine: TransformersEngine, events_taken: int
) -> None:
    events = engine.generate(PROMPT, SamplingParams(max_tokens=300))
    for _ in range(events_taken):
        next(events)
    events.close()  # type: ignore[attr-defined]
    assert reply(engine).finish == "length"


@pytest.mark.parametrize("where", ["prefill", "reply", "third turn"])
def test_window_is_kept(model: Any, where: str) -> None:
    engine = tiny_engine(model, window_tokens=96)
    prompts = {"prefill": 95, "reply": 60, "third turn": 80}
    prompt = (START_ID, *([65, 66, 67] * 40)[: prompts[where] - 1])
    room = 96 - len(prompt)
    if where == "third turn":
        reply(engine, prompt[:20], max_tokens=8)
        reply(engine, prompt[:50], max_tokens=8)
    for max_tokens in {max(1, room - 1), room}:
        last = reply(engine, prompt, max_tokens=max_tokens)
        assert last.usage.completion_tokens == max_tokens or last.finish == "stop"
    with pytest.raises(InputError, match="window of 96 by 1"):
        reply(engine, prompt, max_tokens=room + 1)
    assert reply(engine, prompt[:10], max_tokens=5).finish in ("length", "stop")


@pytest.mark.parametrize("prompt, params", [((), {}), (PROMPT, {"max_tokens": 0})])
def test_empty_requests_are_refused(
    engine: TransformersEngine, prompt: tuple[int, ...], params: dict[str, Any]
) -> None:
    with pytest.raises(InputError):
        reply(engine, prompt, **params)


class Fault:
    """Does something to the model's output, or instead of it, at one call."""

    def __init__(self, model: Any, at_call: int, action: Callable[[Any], Any]) -> None:
        self.calls = 0
        self._at_call, self._action = at_call, action
        self._hook = model.register_forward_hook(self._run)

    def _run(self, module: Any, arguments: Any, output: Any) -> Any:
        self.calls += 1
        return self._action(output) if self.calls == self._at_call else output

    def __enter__(self) -> Fault:
        return self

    def __exit__(self, *details: object) -> None:
        self._hook.remove()


def with_logit(value: float) -> Callable[[Any], Any]:
    def change(output: Any) -> Any:
        output.logits[..., 7] = value
        return output

    return change


def raising(error: Exception) -> Callable[[Any], Any]:
    def fail(output: Any) -> Any:
        raise error

    return fail


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize("at_call", [1, 6])
def test_broken_logits_fail_one_reply_only(
    model: Any, value: float, temperature: float, at_call: int
) -> None:
    engine = tiny_engine(model, piece_tokens=512)
    with (
        Fault(model, at_call, with_logit(value)),
        pytest.raises(EngineError, match="no numbers"),
    ):
        reply(engine, temperature=temperature)
    assert reply(engine).finish == "length"


@pytest.mark.parametrize("at_call", [1, 3, 21])
@pytest.mark.parametrize(
    "error",
    [
        torch.OutOfMemoryError("CUDA out of memory."),
        MemoryError(),
        RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory"),
    ],
)
def test_out_of_memory_fails_one_reply_only(model: Any, at_call: int, error: Exception) -> None:
    kept = Keeping(lambda: new_cache(model))
    engine = tiny_engine(model, piece_tokens=36, store=kept)
    with Fault(model, at_call, raising(error)):
        with pytest.raises(OutOfMemoryError, match="Memory ran out") as caught:
            reply(engine)
        assert caught.value.__context__ is None  # it would hold the tensors of the reply
        assert kept.cleared == 1
        assert reply(engine, PROMPT[:9]).finish == "length"


def test_any_other_failure_is_a_sentence(model: Any) -> None:
    engine = tiny_engine(model)
    with (
        Fault(model, 2, raising(RuntimeError("kernel image\ntrace"))),
        pytest.raises(EngineError, match=r"failed during the reply \(kernel image\)"),
    ):
        reply(engine)
    assert reply(engine).finish == "length"


class Keeping:
    """A store that notes what happens to it."""

    def __init__(self, make_cache: Callable[[], Any]) -> None:
        self._make_cache = make_cache
        self.kept: list[tuple[str | None, Any, tuple[int, ...]]] = []
        self.forgotten: list[str] = []
        self.cleared = 0

    def take_cache(self, conversation_id: str | None, prompt_ids: Any) -> tuple[Any, int]:
        return self._make_cache(), 0

    def give_back(self, conversation_id: str | None, cache: Any, token_ids: Any) -> None:
        self.kept.append((conversation_id, cache, tuple(token_ids)))

    def forget(self, conversation_id: str) -> None:
        self.forgotten.append(conversation_id)

    def clear(self) -> None:
        self.cleared += 1


def test_store_gets_exactly_what_the_cache_holds(model: Any) -> None:
    store = Keeping(lambda: new_cache(model))
    engine = tiny_engine(model, store=store)
    events = engine.generate(PROMPT, SamplingParams(max_tokens=9), conversation_id="a")
    made = finished(events)
    name, cache, ids = store.kept[-1]
    assert name == "a"
    assert ids == (*PROMPT, *made.token_ids[:-1])
    assert cache.get_seq_length() == len(ids)
    with Fault(model, 6, with_logit(float("nan"))), pytest.raises(EngineError):
        list(engine.generate(PROMPT, SamplingParams(max_tokens=40), conversation_id="a"))
    assert store.forgotten == ["a"]
    assert len(store.kept) == 1


def test_replies_wait_for_each_other_in_order(model: Any) -> None:
    engine = tiny_engine(model)
    order: list[int] = []
    holder = engine.generate(PROMPT, SamplingParams(max_tokens=300))
    next(holder)
    threads = []
    for number in range(4):
        thread = threading.Thread(target=lambda n=number: (reply(engine), order.append(n)))  # type: ignore[misc]
        thread.start()
        threads.append(thread)
        time.sleep(0.1)
    stop = threading.Event()
    threading.Timer(0.1, stop.set).start()
    started = time.monotonic()
    last = finished(engine.generate(PROMPT, SamplingParams(max_tokens=40), stop=stop))
    assert last.finish == "cancelled"
    assert time.monotonic() - started < 1.0
    assert order == []
    holder.close()  # type: ignore[attr-defined]
    for thread in threads:
        thread.join(20)
    assert order == [0, 1, 2, 3]


def test_closed_engine_says_so(engine: TransformersEngine) -> None:
    engine.close()
    engine.close()
    assert engine.status.state == "failed"
    with pytest.raises(EngineError, match="closed"):
        reply(engine)
