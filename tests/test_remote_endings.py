"""What is no reply, or only half of one, is told as such: by its form, and by how it ended."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from liar_fixtures import a_liar, an_engine, no_long_waits  # noqa: F401  (fixtures)
from remote_rig import Liar, piece, prompt_of

from chatbot.engine import remote_reply
from chatbot.engine.base import EngineEvent, Finished, SamplingParams, TextDelta
from chatbot.engine.remote import RemoteEngine
from chatbot.engine.remote_endings import ending_notices
from chatbot.errors import ConnectionLostError, RemoteError, ServerBusyError
from chatbot.messages import Notice
from chatbot.ui.i18n import notice_text
from chatbot.ui.sentences import in_language

JSON, HTML, EVENTS = "application/json", "text/html", "text/event-stream"
SAID = {"message": {"role": "assistant", "content": "whole reply"}, "finish_reason": "stop"}
PAGE = b"<html><body>Log in</body></html>\n\n"
PING = b": ping\r\n\r\n"
DONE = b"data: [DONE]\n\n"


def event(said: Any) -> bytes:
    return b"data: %s\n\n" % json.dumps(said).encode()


def answers(liar: Liar, kind: str, *parts: bytes, status: int = 200) -> None:
    liar.raw, liar.asked = lambda _: (status, kind, list(parts)), 0


def events(engine: RemoteEngine) -> Iterator[EngineEvent]:
    return engine.generate(prompt_of(engine, "Hello?"), SamplingParams(max_tokens=20))


def reply(engine: RemoteEngine) -> Finished:
    *_, last = events(engine)
    assert isinstance(last, Finished)
    return last


def is_korean(error: RemoteError) -> bool:
    return bool(re.search("[가-힣]", in_language("ko", str(error))))


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        (HTML, PAGE),
        (EVENTS, PAGE),
        (JSON, b'{"status": "ok"}'),
        (JSON, b'{"choices": []}'),
        (JSON, b'{"choices": ["x"]}'),
        (JSON, b"[1, 2]"),
        (EVENTS, b"data: <html>\n\n"),
        (EVENTS, event({"choices": ["x"]})),
        ("application/octet-stream", b"\xff\xfe\x00"),
    ],
)
def test_what_is_no_stream_is_told_and_asked_once(
    liar: Liar, engine: RemoteEngine, kind: str, body: bytes
) -> None:
    answers(liar, kind, body)
    with pytest.raises(RemoteError, match=r"sent no stream of a reply \(") as caught:
        reply(engine)
    assert type(caught.value) is RemoteError and is_korean(caught.value)
    assert f"({kind})" in str(caught.value)
    assert liar.asked == 1


@pytest.mark.parametrize(
    ("status", "parts"),
    [(200, []), (204, []), *((200, [one]) for one in (DONE, PING, event({"choices": []})))],
)
def test_an_answer_without_a_word_is_told_and_asked_why_once(
    liar: Liar, engine: RemoteEngine, status: int, parts: list[bytes]
) -> None:
    answers(liar, EVENTS, *parts, status=status)
    with pytest.raises(RemoteError, match="without a word of a reply") as caught:
        reply(engine)
    assert type(caught.value) is RemoteError and is_korean(caught.value)
    assert liar.asked == 2


def test_a_connection_lost_before_the_first_word_says_so(
    liar: Liar, engine: RemoteEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote_reply, "ATTEMPTS", 2)
    answers(liar, f"{EVENTS}\r\ncontent-length: 500", b": ping\n\n")
    with pytest.raises(ConnectionLostError, match="before the first word") as caught:
        reply(engine)
    assert is_korean(caught.value)
    assert liar.asked == 3 + 1, "it was asked why more than once"


@pytest.mark.parametrize("space", [None, 2])
def test_a_whole_reply_in_place_of_a_stream_is_taken(
    liar: Liar, engine: RemoteEngine, space: int | None
) -> None:
    n_tokens = len(prompt_of(engine, "Hello?"))
    whole = {"choices": [SAID], "usage": {"prompt_tokens": n_tokens, "completion_tokens": 2}}
    answers(liar, JSON, json.dumps(whole, indent=space).encode())
    last = reply(engine)
    assert (last.text, last.finish, last.usage.completion_tokens) == ("whole reply", "stop", 2)
    assert (liar.asked, last.notices) == (1, ())


@pytest.mark.parametrize(
    "said", [{"error": "boom"}, {"object": "error", "message": "boom"}, {"detail": "boom"}]
)
@pytest.mark.parametrize("as_event", [True, False])
def test_a_fault_in_place_of_a_reply_is_told(
    liar: Liar, engine: RemoteEngine, said: Any, as_event: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote_reply, "ATTEMPTS", 0)
    answers(
        liar, EVENTS if as_event else JSON, event(said) if as_event else json.dumps(said).encode()
    )
    with pytest.raises(ServerBusyError, match=r"failed during the reply \(boom\)"):
        reply(engine)


def test_a_byte_order_mark_hides_nothing(liar: Liar, engine: RemoteEngine) -> None:
    answers(liar, EVENTS, b"\xef\xbb", b"\xbf" + event(piece("hi", "stop")), DONE)
    assert (reply(engine).text, liar.asked) == ("hi", 1)


@pytest.mark.parametrize(
    ("reason", "kind", "sentence"),
    [
        ("content_filter", RemoteError, "did not let the whole reply through"),
        ("SAFETY", RemoteError, "did not let the whole reply through"),
        ("tool_calls", RemoteError, "wanted to call a tool"),
        ("abort", ServerBusyError, "broke the reply off"),
    ],
)
def test_half_a_reply_is_no_good_one(
    liar: Liar, engine: RemoteEngine, reason: str, kind: type[RemoteError], sentence: str
) -> None:
    answers(liar, EVENTS, event(piece("Half a sen")), event(piece("", reason)), DONE)
    told = ""
    with pytest.raises(RemoteError, match=sentence) as caught:
        for one in events(engine):
            told += one.text if isinstance(one, TextDelta) else ""
    assert type(caught.value) is kind and reason in str(caught.value) and is_korean(caught.value)
    assert (told, liar.asked) == ("Half a sen", 1)


def test_no_reply_at_all_is_none_whatever_it_is_called(liar: Liar, engine: RemoteEngine) -> None:
    called = {"tool_calls": [{"index": 0, "id": "c", "function": {"name": "f", "arguments": ""}}]}
    call = {"choices": [{"index": 0, "delta": called, "finish_reason": None}]}
    answers(liar, EVENTS, event(call), event(piece(None, "tool_calls")), DONE)
    with pytest.raises(RemoteError, match="wanted to call a tool"):
        reply(engine)
    answers(liar, EVENTS, event(piece("", "stop")), DONE)
    assert [notice.code for notice in reply(engine).notices] == ["remote_empty"]


def test_a_refusal_is_the_reply(liar: Liar, engine: RemoteEngine) -> None:
    refusal = {"choices": [{"index": 0, "delta": {"refusal": "I can not do that."}}]}
    answers(liar, EVENTS, event(refusal), event(piece("", "stop")), DONE)
    assert (reply(engine).text, reply(engine).notices) == ("I can not do that.", ())


@pytest.mark.parametrize("reason", ["stop", "eos_token", "stop_sequence", "END_TURN", "COMPLETE"])
def test_other_words_for_a_good_end_are_known(
    liar: Liar, engine: RemoteEngine, reason: str
) -> None:
    answers(liar, EVENTS, event(piece("hi", reason)), DONE)
    assert (reply(engine).finish, reply(engine).notices) == ("stop", ())
    answers(liar, EVENTS, event(piece("hi", "model_length")), DONE)
    assert (reply(engine).finish, reply(engine).notices) == ("length", ())


@pytest.mark.parametrize("reason", ["banana", 7, "eaten by\x1b[31m a bear"])
def test_an_unknown_word_for_the_end_is_told(
    liar: Liar, engine: RemoteEngine, reason: str | int
) -> None:
    answers(liar, EVENTS, event(piece("hi", reason)), DONE)
    last = reply(engine)
    assert last.text == "hi" and [notice.code for notice in last.notices] == ["remote_ended"]
    assert "\x1b" not in last.notices[0].text


@pytest.mark.parametrize("notice", [*ending_notices("banana", "hi"), *ending_notices("stop", "")])
def test_notices_are_korean_too(notice: Notice) -> None:
    assert notice_text("en", notice) == notice.text
    assert re.search("[가-힣]", notice_text("ko", notice))
