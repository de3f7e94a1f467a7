"""The scripted engine keeps the same promises as a real one."""

from __future__ import annotations

import random
from collections.abc import Iterator
from threading import Event, Thread

import pytest

from chatbot.engine.base import (
    ChatTokenizer,
    EngineEvent,
    Finished,
    Prefilled,
    SamplingParams,
    TextDelta,
)
from chatbot.engine.chat_format import assemble_ids
from chatbot.engine.scripted import ScriptedEngine, ScriptedReply
from chatbot.engine.scripted_tokenizer import IM_END, ScriptedTokenizer
from chatbot.errors import EngineError, InputError, OutOfMemoryError

PARAMS = SamplingParams(max_tokens=50)
TOKENIZER = ScriptedTokenizer()
PROMPT = assemble_ids(
    TOKENIZER.chat_format, TOKENIZER.encode("Be kind."), [], TOKENIZER.encode("언제 열어요?")
)


def finished(events: Iterator[EngineEvent]) -> Finished:
    """Runs a reply to its end and checks the order of its events."""
    seen = list(events)
    last = seen[-1]
    assert isinstance(last, Finished)
    assert not any(isinstance(event, Finished) for event in seen[:-1])
    assert "".join(e.text for e in seen if isinstance(e, TextDelta)) == last.text
    return last


def test_replies_from_a_list_in_order_and_says_when_it_is_used_up() -> None:
    engine = ScriptedEngine(["뷁 first 👩‍👩‍👧", "second"])
    events = list(engine.generate(PROMPT, PARAMS, conversation_id="a"))
    assert events[0] == Prefilled(len(PROMPT), len(PROMPT), 0)
    assert len(events) > 4
    last = finished(iter(events))
    assert (last.finish, last.text) == ("stop", "뷁 first 👩‍👩‍👧")
    assert engine.tokenizer.decode(last.token_ids) == last.text
    assert last.usage.completion_tokens == len(last.token_ids)
    assert finished(engine.generate(PROMPT, PARAMS)).text == "second"
    with pytest.raises(EngineError, match="no reply left for call 3"):
        list(engine.generate(PROMPT, PARAMS))


def test_replies_from_a_function_of_the_prompt() -> None:
    engine = ScriptedEngine(lambda text, ids: f"{len(ids)} ids, {text.count('<|im_start|>')} turns")
    last = finished(engine.generate(PROMPT, PARAMS))
    assert last.text == f"{len(PROMPT)} ids, 3 turns"


def test_records_every_call() -> None:
    engine = ScriptedEngine(["a", "b"])
    list(engine.generate(PROMPT, PARAMS, conversation_id="x"))
    list(engine.generate(PROMPT[:4], SamplingParams(max_tokens=7)))
    first, second = engine.calls
    assert (first.prompt_ids, first.conversation_id, first.params) == (PROMPT, "x", PARAMS)
    assert first.prompt_text == (
        "<|im_start|>system\nBe kind.<|im_end|>\n<|im_start|>user\n언제 열어요?<|im_end|>\n"
        "<|im_start|>assistant\n"
    )
    assert (second.conversation_id, second.params.max_tokens) == (None, 7)


def test_length_limit_stop_string_and_end_token() -> None:
    engine = ScriptedEngine(
        [
            "one two three four",
            "one STOP two",
            ScriptedReply(token_ids=(*TOKENIZER.encode("early"), IM_END, *TOKENIZER.encode("x"))),
            ScriptedReply("again ", ends_itself=False),
        ]
    )
    short = finished(engine.generate(PROMPT, SamplingParams(max_tokens=2)))
    assert (short.finish, short.text, len(short.token_ids)) == ("length", "one two", 2)
    stopped = finished(engine.generate(PROMPT, SamplingParams(stop=("STOP",))))
    assert (stopped.finish, stopped.text) == ("stop", "one ")
    ended = finished(engine.generate(PROMPT, PARAMS))
    assert (ended.finish, ended.text) == ("stop", "early")
    endless = finished(engine.generate(PROMPT, PARAMS))
    assert (endless.finish, len(endless.token_ids)) == ("length", 50)


def test_a_prompt_that_does_not_fit_is_refused_by_how_much() -> None:
    engine = ScriptedEngine(["a"], window_tokens=len(PROMPT) + 9)
    with pytest.raises(InputError, match="by 1;"):
        list(engine.generate(PROMPT, SamplingParams(max_tokens=10)))
    for prompt, params in (((), PARAMS), (PROMPT, SamplingParams(max_tokens=0))):
        with pytest.raises(InputError):
            list(engine.generate(prompt, params))
    assert finished(engine.generate(PROMPT, SamplingParams(max_tokens=9))).text == "a"


def test_stopping_ends_within_two_tokens_and_frees_the_engine() -> None:
    engine = ScriptedEngine([ScriptedReply("word ", ends_itself=False), "next"])
    stop = Event()
    after = 0
    events = engine.generate(PROMPT, SamplingParams(max_tokens=4000), stop=stop)
    for n, event in enumerate(events):
        if n == 10:
            stop.set()
        after += n > 10 and isinstance(event, TextDelta)
        last = event
    assert after <= 2
    assert isinstance(last, Finished) and last.finish == "cancelled"
    assert finished(engine.generate(PROMPT, PARAMS)).text == "next"


def test_closing_the_iterator_frees_the_engine() -> None:
    engine = ScriptedEngine([ScriptedReply("word ", ends_itself=False), "next"])
    events = engine.generate(PROMPT, PARAMS)
    next(events)
    next(events)
    events.close()  # type: ignore[attr-defined]
    assert finished(engine.generate(PROMPT, PARAMS)).text == "next"


def test_stopped_before_the_first_token() -> None:
    engine = ScriptedEngine(["never"])
    stop = Event()
    stop.set()
    last = finished(engine.generate(PROMPT, PARAMS, stop=stop))
    assert (last.finish, last.text) == ("cancelled", "")


@pytest.mark.parametrize("error", [OutOfMemoryError("Memory ran out."), None])
def test_failing_in_the_middle_and_going_on(error: Exception | None) -> None:
    engine = ScriptedEngine([ScriptedReply("a b c d", fail_after_tokens=2, error=error), "fine"])
    texts = []
    with pytest.raises(type(error) if error else EngineError):
        texts.extend(e.text for e in engine.generate(PROMPT, PARAMS) if isinstance(e, TextDelta))
    assert texts == ["a", " b"]
    assert finished(engine.generate(PROMPT, PARAMS)).text == "fine"
    refuses = ScriptedEngine([EngineError("No."), "fine"])
    with pytest.raises(EngineError, match="No"):
        list(refuses.generate(PROMPT, PARAMS))


def test_one_reply_at_a_time_and_a_waiting_one_can_be_stopped() -> None:
    engine = ScriptedEngine([ScriptedReply("a b", stall_after_tokens=1), "second"])
    first_stop, second_stop = Event(), Event()
    results: dict[str, Finished] = {}
    started = Event()

    def first() -> None:
        for event in engine.generate(PROMPT, PARAMS, stop=first_stop):
            started.set()
            if isinstance(event, Finished):
                results["first"] = event

    thread = Thread(target=first)
    thread.start()
    assert started.wait(5)
    second_stop.set()
    waiting = finished(engine.generate(PROMPT, PARAMS, stop=second_stop))
    assert waiting.finish == "cancelled"
    assert len(engine.calls) == 1, "a second reply began beside the first"
    first_stop.set()
    thread.join(5)
    assert (results["first"].finish, results["first"].text) == ("cancelled", "a")
    assert finished(engine.generate(PROMPT, PARAMS)).text == "second"


def test_reuse_is_reported_per_conversation() -> None:
    engine = ScriptedEngine(["a b"] * 5)
    one = finished(engine.generate(PROMPT, PARAMS, conversation_id="x"))
    fmt = TOKENIZER.chat_format
    longer = (*PROMPT, *one.token_ids, *fmt.after_assistant, *TOKENIZER.encode("More"), *fmt.end)
    two = finished(engine.generate(longer, PARAMS, conversation_id="x"))
    assert two.usage.cached_tokens == len(PROMPT) + len(one.token_ids)
    assert finished(engine.generate(longer, PARAMS)).usage.cached_tokens == 0
    again = finished(engine.generate(longer, PARAMS, conversation_id="x"))
    assert again.usage.cached_tokens == len(longer) - 1
    engine.forget("x")
    fresh = finished(engine.generate(longer, PARAMS, conversation_id="x"))
    assert fresh.usage.cached_tokens == 0


def test_wrong_output_is_passed_on_as_a_real_engine_would() -> None:
    half = TOKENIZER.encode("한국어")[:1]
    engine = ScriptedEngine([ScriptedReply(token_ids=half), ScriptedReply(token_ids=(7, 200))])
    last = finished(engine.generate(PROMPT, PARAMS))
    assert (last.text, TOKENIZER.decode(last.token_ids)) == ("한국", "한국")
    assert finished(engine.generate(PROMPT, PARAMS)).text == ""


def test_speed() -> None:
    engine = ScriptedEngine(["a b c d e"], tokens_per_s=50)
    assert finished(engine.generate(PROMPT, PARAMS)).usage.decode_s >= 0.1


def test_closed_engine_refuses() -> None:
    engine = ScriptedEngine(["a"])
    assert engine.status.state == "ready"
    engine.close()
    engine.close()
    assert engine.status.state == "failed"
    with pytest.raises(EngineError, match="closed"):
        list(engine.generate(PROMPT, PARAMS))


def test_the_tokenizer_loses_nothing() -> None:
    assert isinstance(TOKENIZER, ChatTokenizer)
    rng = random.Random(2)
    pool = [*range(0x250), *range(0xAC00, 0xAC20), 0x1F468, 0x200D, 0x301, 0x20BB7, 0x3000]
    for _ in range(300):
        text = "".join(chr(rng.choice(pool)) for _ in range(rng.randint(0, 40)))
        ids = TOKENIZER.encode(text)
        assert TOKENIZER.decode(ids) == text
        assert all(0x100 <= i < 2**49 for i in ids)


def test_the_tokenizer_is_about_as_dense_as_real_ones() -> None:
    english = "The library opens at nine and closes at six on weekdays."
    korean = "도서관은 평일 아침 아홉 시에 열고 저녁 여섯 시에 닫습니다."
    assert 3 < len(english) / len(TOKENIZER.encode(english)) < 6
    assert 1 < len(korean) / len(TOKENIZER.encode(korean)) < 3
