"""A server that is not what it says, or answers nonsense: sentences, limits, and no key in them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest
from remote_rig import MODEL, WHOLE, Liar, a_model, piece, prompt_of, remote_engine

from chatbot.engine import remote_client, remote_reply, remote_stream
from chatbot.engine.base import Finished, Prefilled, SamplingParams, TextDelta
from chatbot.engine.remote import RemoteEngine
from chatbot.engine.remote_client import HIDDEN_KEY
from chatbot.errors import (
    ConnectionLostError,
    NoAnswerError,
    PromptTooLongError,
    RemoteError,
    SettingsError,
)

KEY = "sk-very-secret-0123456789"


@pytest.fixture(autouse=True)
def no_long_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote_reply, "FIRST_WAIT_S", 0.01)


@pytest.fixture(name="liar")
def a_liar() -> Iterator[Liar]:
    with a_model() as liar:
        yield liar


@pytest.fixture
def engine(liar: Liar) -> Iterator[RemoteEngine]:
    engine = remote_engine(liar.url, api_key=KEY)
    yield engine
    engine.close()


def reply(engine: RemoteEngine) -> Finished:
    last = list(engine.generate(prompt_of(engine, "Hello?"), SamplingParams(max_tokens=20)))[-1]
    assert isinstance(last, Finished)
    return last


@pytest.mark.parametrize(
    "said", ["<html>hi</html>", '{"data":', [1, 2], {"data": ["m"]}, {"data": 5}]
)
def test_what_is_no_such_server_is_a_sentence(liar: Liar, said: Any) -> None:
    liar.says["/v1/models"] = said
    with pytest.raises(RemoteError, match="does not list models"):
        remote_engine(liar.url)


@pytest.mark.parametrize("path", ["/v1/models", "/props", "/v1/chat/completions"])
def test_an_answer_without_an_end_is_not_waited_for(
    liar: Liar, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote_client, "WHOLE_ANSWER_S", 0.3)
    liar.says.setdefault(path, {})
    liar.drips = path
    begin = time.monotonic()
    with pytest.raises(NoAnswerError, match="had no end after"):
        remote_engine(liar.url, api_key=KEY, engine_timeout_s=0.3)
    assert time.monotonic() - begin < 30


@pytest.mark.parametrize("path", ["/app", "/app/v1"])
def test_a_web_server_that_is_no_engine_is_a_sentence(liar: Liar, path: str) -> None:
    with pytest.raises(
        RemoteError, match=r"does not list models .* correct --engine-url"
    ) as caught:
        remote_engine(liar.url.removesuffix("/v1") + path, api_key=KEY)
    assert KEY not in str(caught.value)


@pytest.mark.parametrize(
    ("owner", "path", "said"),
    [
        ("llamacpp", "/props", {"default_generation_settings": "x"}),
        ("library", "/api/ps", {"models": ["m"]}),
        ("library", "/api/ps", {"models": 5}),
        ("x", "/v1/chat/completions", {**WHOLE, "usage": {"prompt_tokens": "abc"}}),
        ("x", "/v1/chat/completions", "<html>hi</html>"),
    ],
)
def test_nonsense_about_itself_is_passed_over(liar: Liar, owner: str, path: str, said: Any) -> None:
    entry = {name: value for name, value in MODEL.items() if name != "max_model_len"}
    liar.says |= {"/v1/models": {"data": [{**entry, "owned_by": owner}]}, path: said}
    engine = remote_engine(liar.url, window_tokens=2048)
    assert engine.info.details["estimated"]
    engine.close()


def test_a_reply_without_an_end_ends_at_its_limit(liar: Liar, engine: RemoteEngine) -> None:
    def endless() -> Iterator[Any]:
        while True:
            yield piece("word " * 20)

    liar.streams = endless
    began = time.monotonic()
    last = reply(engine)
    assert last.finish == "length"
    assert len(last.text) == 20 * remote_reply.TOKEN_CHARS
    liar.streams = lambda: iter([piece("x" * 1_000_000), piece("", "stop")])
    last = reply(engine)
    assert (last.finish, len(last.text)) == ("length", 20 * remote_reply.TOKEN_CHARS)
    assert time.monotonic() - began < 20


@pytest.mark.parametrize(
    "event", [[1], 5, None, "x", {"choices": ["x"]}, {"choices": {"a": 1}}, piece(5), piece(["x"])]
)
def test_events_of_another_form_end_the_reply_with_a_sentence(
    liar: Liar, engine: RemoteEngine, event: Any
) -> None:
    liar.streams = lambda: iter([piece("hi"), event, piece("", "stop")])
    with pytest.raises(ConnectionLostError):
        reply(engine)


@pytest.mark.parametrize("tokens", ["abc", -7, 1.5, [1], 10**30])
def test_counts_that_can_be_none_do_not_count(
    liar: Liar, engine: RemoteEngine, tokens: Any
) -> None:
    usage = {
        "prompt_tokens": tokens,
        "completion_tokens": tokens,
        "prompt_tokens_details": {"cached_tokens": tokens},
    }
    liar.streams = lambda: iter([piece("hi", "stop", usage=usage)])
    found = reply(engine).usage
    assert found.prompt_tokens == len(prompt_of(engine, "Hello?"))
    assert (found.cached_tokens, found.completion_tokens) == (0, 1)


def test_more_cached_tokens_than_there_are_count_as_all_and_are_told(
    liar: Liar, engine: RemoteEngine
) -> None:
    n_tokens = len(prompt_of(engine, "Hello?"))
    usage = {
        "prompt_tokens": n_tokens,
        "completion_tokens": 10**9,
        "prompt_tokens_details": {"cached_tokens": 5000},
    }
    liar.streams = lambda: iter([piece("hi", "stop", usage=usage)])
    events = list(engine.generate(prompt_of(engine, "Hello?"), SamplingParams(max_tokens=20)))
    last = events[-1]
    assert isinstance(events[0], Prefilled) and isinstance(last, Finished)
    assert events[0].cached_tokens == last.usage.cached_tokens == n_tokens
    assert last.usage.completion_tokens == 1
    (notice,) = (one for one in last.notices if one.code == "remote_cached")
    assert notice.values == {"told": 5000, "counted": n_tokens}


@pytest.mark.parametrize("claim", [1, 63, 10**10, 10**30])
def test_a_context_that_cannot_be_is_asked_for(liar: Liar, claim: int) -> None:
    liar.says["/v1/models"] = {"data": [{**MODEL, "max_model_len": claim}]}
    with pytest.raises(SettingsError, match="cannot be; set --window-tokens") as caught:
        remote_engine(liar.url)
    assert len(str(caught.value)) < 200
    engine = remote_engine(liar.url, window_tokens=2048)
    assert engine.info.details["context_tokens"] == 2048
    engine.close()


def test_a_number_of_endless_digits_is_passed_over(liar: Liar) -> None:
    liar.says |= {"/v1/models": {"data": [{**MODEL, "owned_by": "llamacpp"}]}}
    liar.says |= {"/props": "9" * 5000}
    engine = remote_engine(liar.url)
    assert engine.info.details["context_tokens"] == 2048
    engine.close()


@pytest.mark.parametrize("limit", [1, 10**30])
def test_a_limit_that_cannot_be_does_not_shorten_the_window(
    liar: Liar, engine: RemoteEngine, limit: int
) -> None:
    liar.refusal = (400, f"This model's maximum context length is {limit} tokens.")
    with pytest.raises(PromptTooLongError) as caught:
        reply(engine)
    assert caught.value.limit_tokens == 0
    assert engine.info.details["context_tokens"] == 2048


@pytest.mark.parametrize(
    "sign", [piece(""), piece(None), {"choices": []}, piece("", usage={"prompt_tokens": 3})]
)
def test_signs_of_life_without_a_word_end_at_the_time_limit(
    liar: Liar, monkeypatch: pytest.MonkeyPatch, sign: Any
) -> None:
    monkeypatch.setattr(remote_reply, "GRACE_S", 0.0)
    monkeypatch.setattr(remote_reply, "ATTEMPTS", 0)

    def alive() -> Iterator[Any]:
        yield piece("hi")
        for _ in range(3000):
            yield sign
            time.sleep(0.01)

    liar.streams = alive
    engine = remote_engine(liar.url, engine_timeout_s=0.5)
    text = ""
    began = time.monotonic()
    with pytest.raises(NoAnswerError, match="no word of a reply"):
        for event in engine.generate(prompt_of(engine, "Hello?"), SamplingParams(max_tokens=20)):
            text += event.text if isinstance(event, TextDelta) else ""
    assert text == "hi"
    assert time.monotonic() - began < 15
    engine.close()


def test_thoughts_are_words_but_not_without_end(
    liar: Liar, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote_reply, "GRACE_S", 0.0)

    def thinking() -> Iterator[Any]:
        for _ in range(24):
            yield {"choices": [{"index": 0, "delta": {"reasoning_content": "so"}}]}
            time.sleep(0.05)
        yield piece("hi", "stop")

    engine = remote_engine(liar.url, engine_timeout_s=1.0)
    liar.streams = thinking
    assert reply(engine).text == "hi"
    thought = {"choices": [{"index": 0, "delta": {"reasoning": "so " * 1000}}]}
    liar.streams = lambda: iter([thought, thought, piece("hi", "stop")])
    assert (reply(engine).finish, reply(engine).text) == ("length", "")
    engine.close()


def test_a_reply_that_has_ended_waits_for_the_streams_end_no_longer(
    liar: Liar, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote_stream, "END_WAIT_S", 0.2)

    def never_closed() -> Iterator[Any]:
        yield piece("hi", "stop")
        for _ in range(3000):
            yield piece("", "stop")
            time.sleep(0.01)

    liar.streams = never_closed
    engine = remote_engine(liar.url)
    began = time.monotonic()
    assert (reply(engine).finish, reply(engine).text) == ("stop", "hi")
    assert time.monotonic() - began < 15
    engine.close()


def test_half_a_surrogate_becomes_a_mark(liar: Liar, engine: RemoteEngine) -> None:
    liar.streams = lambda: iter([piece("a\ud800b \ud83d\ude00"), piece("", "stop")])
    assert reply(engine).text == "a\ufffdb \U0001f600"


@pytest.mark.parametrize("status", [400, 401, 404, 429, 500])
def test_a_key_that_the_server_says_back_is_hidden(
    liar: Liar, engine: RemoteEngine, status: int
) -> None:
    liar.refusal = (status, f"Incorrect API key provided: {KEY}.")
    with pytest.raises(RemoteError, match="Incorrect API key") as caught:
        reply(engine)
    assert HIDDEN_KEY in str(caught.value)
    error: BaseException | None = caught.value
    while error is not None:
        assert KEY not in f"{error}{error!r}"
        error = error.__cause__


@pytest.mark.parametrize("key", ["sk-SECRET\r\nX-Other: 1", "sk-SECRET키", "sk SECRET", "sk\0S"])
def test_a_key_that_no_header_can_hold_is_a_sentence_without_it(liar: Liar, key: str) -> None:
    with pytest.raises(SettingsError, match="copy it anew") as caught:
        remote_engine(liar.url, api_key=key)
    assert "SECRET" not in str(caught.value)


def test_the_end_of_a_files_line_is_no_part_of_the_key(liar: Liar) -> None:
    remote_engine(liar.url, api_key=f"{KEY}\n").close()


@pytest.mark.parametrize(
    "url",
    [
        "http://user:SEC/RET@127.0.0.1:9/v1", "http://user:SEC#RET@127.0.0.1:9",
        "http://user:SEC?RET@127.0.0.1:9", "http://[::1/v1", "http://user:SECRET",
        "http://127.0.0.1:99999/v1", "http://a\u2100b/v1",
    ],
)  # fmt: skip
def test_an_address_that_cannot_be_read_is_a_sentence_without_its_password(url: str) -> None:
    with pytest.raises(SettingsError, match="http://host:8000/v1") as caught:
        remote_engine(url)
    assert "SEC" not in str(caught.value)


def test_a_prompt_follows_no_redirect_to_another_server(liar: Liar, engine: RemoteEngine) -> None:
    other = Liar()
    try:
        liar.elsewhere = other.url + "/chat/completions"
        with pytest.raises(RemoteError) as refused:
            reply(engine)
        assert other.asked == 0
        assert KEY not in str(refused.value)
    finally:
        other.close()
