"""Counts and token ids that cannot be are not believed, and not kept."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from peer_server import Fault, Peer
from remote_rig import WHOLE, Liar, a_model, piece, prompt_of, remote_engine

from chatbot.chat import Chat
from chatbot.chat_events import TurnDone
from chatbot.engine.base import Finished, SamplingParams
from chatbot.engine.remote import RemoteEngine
from chatbot.engine.remote_believed import is_believable, least_tokens, may_have, most_tokens
from chatbot.engine.remote_probe import sample_prompt
from chatbot.errors import RemoteError, TokenizerError
from chatbot.settings import Settings
from chatbot.store import Store
from chatbot.ui.i18n import notice_text
from chatbot.ui.sentences import in_language

KINDS = ("vLLM", "llama.cpp")
ASKED = "Where is the harbour of the town, and 등대는 어디에 있나요?"
LIES: dict[str, Callable[[list[int]], dict[str, Any]]] = {
    "cut": lambda ids: {"tokens": ids[:1]},
    "cut, counted": lambda ids: {"tokens": ids[:-1], "count": len(ids)},
    "doubled, counted": lambda ids: {"tokens": ids * 2, "count": len(ids)},
    "many": lambda ids: {"tokens": ids * 300},
    "none": lambda ids: {"tokens": []},
    "huge": lambda ids: {"tokens": [10**12] * len(ids)},
    "below": lambda ids: {"tokens": [-1] * len(ids)},
    "yes": lambda ids: {"tokens": [True] * len(ids)},
    "no list": lambda ids: {"tokens": "many"},
}


def truth(ids: list[int]) -> dict[str, Any]:
    return {"tokens": ids, "count": len(ids)}


@pytest.fixture(scope="module", params=KINDS)
def shared(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Peer, RemoteEngine]]:
    peer = Peer(request.param, tmp_path_factory.mktemp("peer"))
    peer.tokens_said = truth
    engine = remote_engine(peer.url)
    yield peer, engine
    engine.close()
    peer.stop()


@pytest.mark.parametrize("lie", LIES)
def test_token_ids_that_cannot_be_are_a_sentence_and_are_not_kept(
    shared: tuple[Peer, RemoteEngine], lie: str
) -> None:
    peer, engine = shared
    text = f"{ASKED} ({lie})"
    peer.tokens_said = LIES[lie]
    try:
        with pytest.raises(TokenizerError, match="restart it") as caught:
            engine.tokenizer.encode(text)
    finally:
        peer.tokens_said = truth
    assert in_language("ko", str(caught.value)) != str(caught.value)
    assert engine.tokenizer.decode(engine.tokenizer.encode(text)) == text


def test_a_chat_goes_on_after_the_server_lied_once(
    shared: tuple[Peer, RemoteEngine], tmp_path: Path
) -> None:
    peer, engine = shared
    store = Store(tmp_path / "chats.db")
    settings = Settings(data_dir=tmp_path, engine_url=peer.url)
    chat = Chat(settings=settings, store=store, engine=engine)
    id_ = store.create_conversation().id
    list(chat.reply(id_, "First?"))
    peer.tokens_said = LIES["cut"]
    with pytest.raises(TokenizerError):
        list(chat.reply(id_, ASKED))
    peer.tokens_said = truth
    *_, last = chat.reply(id_, ASKED)
    assert isinstance(last, TurnDone) and last.turn.finish == "stop"
    assert ASKED in peer.text(peer.requests[-1]["prompt"])
    chat.close()
    store.close()


def test_ids_that_the_server_does_not_take_are_asked_for_anew(
    shared: tuple[Peer, RemoteEngine],
) -> None:
    peer, engine = shared
    text = f"{ASKED} (once)"
    peer.tokens_said = lambda ids: truth([5000] * len(ids))  # may be, but is in no vocabulary here
    prompt = prompt_of(engine, text)
    peer.tokens_said = truth
    assert engine.tokenizer.encode(text)[0] == 5000
    peer.faults = [Fault(400, "Token id 5000 is out of vocabulary")]
    with pytest.raises(RemoteError, match="out of vocabulary"):
        list(engine.generate(prompt, SamplingParams(max_tokens=40)))
    assert engine.tokenizer.decode(engine.tokenizer.encode(text)) == text


def test_a_whole_reply_stays_one_when_it_can_not_be_counted(
    shared: tuple[Peer, RemoteEngine], monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = shared[1]
    prompt = prompt_of(engine, "Hello?")

    def ended(text: str) -> tuple[int, ...]:
        raise TokenizerError("no")

    monkeypatch.setattr(engine.tokenizer, "encode", ended)
    monkeypatch.setattr(engine.tokenizer, "decode", ended)
    *_, last = engine.generate(prompt, SamplingParams(max_tokens=40))
    assert isinstance(last, Finished)
    assert (last.text, last.finish, last.token_ids) == ("The scripted reply.", "stop", ())


def test_a_server_that_does_not_answer_is_asked_once(tmp_path: Path) -> None:
    peer = Peer("vLLM", tmp_path)
    engine = remote_engine(peer.url, engine_timeout_s=0.4)
    asked = []

    def hangs(ids: list[int]) -> dict[str, Any]:
        asked.append(ids)
        time.sleep(1.5)
        return truth(ids)

    peer.tokens_said = hangs
    with pytest.raises(TokenizerError, match="did not answer in time"):
        engine.tokenizer.encode(ASKED)
    assert len(asked) == 1
    engine.close()
    peer.stop()


@pytest.mark.parametrize(
    "text", ["", "a", " " * 3000, "=" * 500, ASKED, "안녕하세요 " * 40, "🙂" * 9]
)
def test_what_vocabularies_take_is_within_the_limits(text: str) -> None:
    letters, words = len(text.encode()), len(text.split())
    assert may_have(text, letters) and may_have(text, words + len(text) // 16)
    assert least_tokens(text) <= words + len(text) // 100
    assert not may_have(text, most_tokens(text) + 1)


def test_a_text_of_words_has_more_than_a_few_tokens() -> None:
    assert not may_have(ASKED, 1) and not may_have("등대는 어디에 있나요 " * 30, 29)
    assert not may_have("가" * 3000, 3) and not may_have("a", 100)


def said(liar: Liar, engine: RemoteEngine, told: int, system: str, done: int = 2) -> Finished:
    usage = {"prompt_tokens": told, "completion_tokens": done}
    liar.streams = lambda: iter(
        [piece("one two three four five six", "stop"), {"choices": [], "usage": usage}]
    )
    prompt = prompt_of(engine, "Hello?", system)
    *_, last = engine.generate(prompt, SamplingParams(max_tokens=20))
    assert isinstance(last, Finished)
    return last


SYSTEM = "Answer the last message of the user, briefly and in its language."


@pytest.fixture(scope="module")
def lied_to() -> Iterator[tuple[Liar, RemoteEngine]]:
    with a_model() as liar:
        engine = remote_engine(liar.url)
        yield liar, engine
        engine.close()


@pytest.mark.parametrize("told", [1, 2, 4, 2049, 5000, 999_999, (1 << 31) - 1])
def test_a_count_of_the_prompt_that_cannot_be_is_not_taken(
    lied_to: tuple[Liar, RemoteEngine], told: int
) -> None:
    liar, engine = lied_to
    last = said(liar, engine, told, SYSTEM)
    counted = len(prompt_of(engine, "Hello?", SYSTEM))
    assert (last.usage.prompt_tokens, last.usage.completion_tokens) == (counted, 2)
    (notice,) = last.notices
    assert notice.code == "remote_count_odd"
    assert notice.values == {"told": told, "counted": counted}
    assert notice_text("en", notice).replace(",", "") == notice.text.replace(",", "")
    assert "토큰" in notice_text("ko", notice)


def test_a_count_that_can_be_is_taken(lied_to: tuple[Liar, RemoteEngine]) -> None:
    assert said(*lied_to, told=17, system=SYSTEM).usage.prompt_tokens == 17
    assert said(*lied_to, 17, SYSTEM, done=1).usage.completion_tokens > 2


@pytest.mark.parametrize("kind", ["vLLM", "text", "messages"])
def test_an_exact_count_is_not_given_up_for_one_that_cannot_be(tmp_path: Path, kind: str) -> None:
    peer = Peer(kind, tmp_path / "peer")
    engine = remote_engine(peer.url)
    right, was = peer._usage, engine.info.details["estimated"]
    for told in (1, 999_999) if was else (1, 5, 999_999):
        wrong = {"usage": {"prompt_tokens": told, "completion_tokens": 1}}
        peer._usage = lambda ids, said, wrong=wrong: wrong  # type: ignore[method-assign, misc]
        *_, last = engine.generate(prompt_of(engine, "Hello?"), SamplingParams(max_tokens=3))
        assert isinstance(last, Finished)
        assert [notice.code for notice in last.notices] == ["remote_count_odd"]
        assert engine.info.details["estimated"] is was
    peer._usage = right  # type: ignore[method-assign]
    way = engine._way
    for ids in (sample_prompt(way), prompt_of(engine, "="), prompt_of(engine, "가나 " * 99)):
        counted = len(ids)
        assert all(is_believable(n, ids, way) for n in (counted, counted + 1, counted - 1))
    engine.close()
    peer.stop()


@pytest.mark.parametrize("told", [1, 999_999])
def test_a_server_that_always_lies_about_counts_is_one_that_tells_none(told: int) -> None:
    with a_model() as liar:
        plain = remote_engine(liar.url)
        liar.says["/v1/chat/completions"] = {**WHOLE, "usage": {"prompt_tokens": told}}
        engine = remote_engine(liar.url)
        assert engine.tokenizer.chat_format == plain.tokenizer.chat_format
        assert len(engine.tokenizer.encode(ASKED)) == len(plain.tokenizer.encode(ASKED))
        plain.close()
        engine.close()
