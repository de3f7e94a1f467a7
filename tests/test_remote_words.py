"""A server's own words for a refusal, in each form that servers give them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from liar_fixtures import a_liar, an_engine, no_long_waits  # noqa: F401  (fixtures)
from remote_rig import Liar, piece, prompt_of

from chatbot.chat import Chat
from chatbot.chat_events import TurnDone
from chatbot.engine import remote_reply
from chatbot.engine.base import SamplingParams
from chatbot.engine.remote import RemoteEngine
from chatbot.engine.remote_words import MAX_SHOWN, says_fault, words_of
from chatbot.errors import PromptTooLongError, RemoteError, ServerBusyError, UnknownModelError
from chatbot.settings import Settings
from chatbot.store import Store

TGI = (
    "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 1024. "
    "Given: 1500 `inputs` tokens and 200 `max_new_tokens`"
)
FIELD = [{"loc": ["body", "temperature"], "msg": "must be > 0", "type": "value_error"}]


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"error": "boom", "error_type": "validation"}, "boom"),
        ({"error": {"message": "boom"}}, "boom"),
        ({"error": {"message": None, "detail": "boom"}}, "boom"),
        ({"error": True, "message": "boom"}, "boom"),
        ({"error": None, "message": "boom"}, "boom"),
        ({"error": "Bad Request", "message": "boom"}, "boom"),
        ({"detail": "boom"}, "boom"),
        ({"detail": FIELD}, "temperature: must be > 0"),
        ({"detail": [*FIELD, {"msg": "boom"}]}, "temperature: must be > 0; boom"),
        ({"errors": [{"message": "boom"}]}, "boom"),
        (["boom"], "boom"),
        ("boom", "boom"),
        ("bad \x1b[31mred\x00\nline", "bad [31mred line"),
        ("<html><head><title>502 Bad\nGateway</title></head><p>x</p>", "502 Bad Gateway"),
        ("<!DOCTYPE html><p>x</p>", ""),
        ("", ""),
        (None, ""),
        ({"error": 7}, ""),
        ([[[[[["deep"]]]]]], ""),
    ],
)
def test_words_are_found_in_every_form(body: Any, words: str) -> None:
    assert words_of(body) == words


def test_words_are_not_endless() -> None:
    assert len(words_of({"error": "x" * 100_000})) == MAX_SHOWN + 1


def test_a_report_of_a_fault_is_told_from_a_reply() -> None:
    assert says_fault({"object": "error", "message": "boom"})
    assert says_fault({"error": "boom"})
    assert not says_fault({"choices": [{}], "error": None})
    assert not says_fault({"choices": []}) and not says_fault("boom")


def refused(engine: RemoteEngine, liar: Liar, status: int, body: Any) -> RemoteError:
    liar.raw = lambda _: (status, "application/json", [json.dumps(body).encode()])
    with pytest.raises(RemoteError) as caught:
        list(engine.generate(prompt_of(engine, "Hello?"), SamplingParams(max_tokens=20)))
    return caught.value


@pytest.mark.parametrize(
    ("status", "body", "kind", "words"),
    [
        (404, {"error": 'model "m" not found, try pulling it first'}, UnknownModelError, "pulling"),
        (422, {"detail": FIELD}, RemoteError, "temperature: must be > 0"),
        (422, {"error": TGI, "error_type": "validation"}, PromptTooLongError, "<= 1024"),
        (422, {"error": "`inputs` must have less than 1024 tokens."}, PromptTooLongError, "1024"),
        (400, {"error": True, "message": "no such thing"}, RemoteError, "no such thing"),
        (500, {"error": "llama runner: out of memory"}, ServerBusyError, "out of memory"),
    ],
)
def test_a_reason_given_in_any_form_is_told(
    engine: RemoteEngine, liar: Liar, status: int, body: Any, kind: type[RemoteError], words: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(remote_reply, "ATTEMPTS", 0)
    error = refused(engine, liar, status, body)
    assert type(error) is kind and words in str(error)
    if isinstance(error, PromptTooLongError):
        assert error.limit_tokens == 1024


@pytest.mark.parametrize("body", [{"error": TGI, "error_type": "validation"}, {"detail": TGI}])
def test_a_shorter_prompt_is_made_whatever_form_the_refusal_has(
    liar: Liar, engine: RemoteEngine, tmp_path: Path, body: Any
) -> None:
    first = [(422, "application/json", [json.dumps(body).encode()])]
    fine = b"data: %s\n\ndata: [DONE]\n\n" % json.dumps(piece("fine", "stop")).encode()
    liar.raw = lambda _: first.pop() if first else (200, "text/event-stream", [fine])
    store = Store(tmp_path / "chats.db")
    settings = Settings(data_dir=tmp_path, engine_url=liar.url)
    chat = Chat(settings=settings, store=store, engine=engine)
    asked = liar.asked
    *_, last = chat.reply(store.create_conversation().id, "tell me of the harbour " * 150)
    assert isinstance(last, TurnDone) and last.turn.reply == "fine"
    assert "remote_too_long" in [notice.code for notice in last.turn.notices]
    assert liar.asked - asked == 2
    chat.close()
    store.close()
