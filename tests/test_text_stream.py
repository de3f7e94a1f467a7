"""Streaming: whole characters only, and no part of a stop string."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from toy_tokenizers import (
    CHATML_TOKENS,
    byte_level_json,
    llama3_vocabulary,
    model_folder,
    sentencepiece_json,
)

from chatbot.engine.base import ChatTokenizer
from chatbot.engine.scripted_tokenizer import ScriptedTokenizer
from chatbot.engine.text_stream import Detokenizer, StopMatcher, TextStream
from chatbot.engine.tokenizers import load_tokenizer

TEXT = "뷁 쀍 👩‍👩‍👧 🇰🇷 e\u0301 𠮷 the end"
KINDS = ("bytes", "sentencepiece", "scripted", "llama3")


@pytest.fixture(params=KINDS)
def tokenizer(request: pytest.FixtureRequest, tmp_path: Path) -> ChatTokenizer:
    if request.param == "scripted":
        return ScriptedTokenizer()
    if request.param == "llama3":
        return load_tokenizer(llama3_vocabulary())
    text = byte_level_json(CHATML_TOKENS) if request.param == "bytes" else sentencepiece_json()
    return load_tokenizer(model_folder(tmp_path / "model", text))


def stream(tokenizer: ChatTokenizer, ids: tuple[int, ...]) -> list[str]:
    detokenizer = Detokenizer(tokenizer)
    return [*(detokenizer.push(i) for i in ids), detokenizer.flush()]


def test_characters_come_out_whole(tokenizer: ChatTokenizer) -> None:
    """BC-31."""
    ids = tokenizer.encode(TEXT)
    events = stream(tokenizer, ids)
    assert not any("\ufffd" in event for event in events)
    assert "".join(events) == tokenizer.decode(ids) == TEXT
    assert sum(bool(event) for event in events) > 5


def test_a_reply_that_ends_inside_a_character(tokenizer: ChatTokenizer) -> None:
    ids = tokenizer.encode("x가나다 뷁")
    cuts = 0
    for n in range(len(ids) + 1):
        detokenizer = Detokenizer(tokenizer)
        text = "".join(detokenizer.push(i) for i in ids[:n]) + detokenizer.flush()
        assert "\ufffd" not in text
        assert "x가나다 뷁".startswith(text)
        assert detokenizer.dropped_tail == ("\ufffd" in tokenizer.decode(ids[:n]))
        cuts += detokenizer.dropped_tail
    assert cuts, "no id ended inside a character; the test says nothing"


def test_random_ids_join_to_the_full_decode(tokenizer: ChatTokenizer) -> None:
    """Also broken bytes, as an untrained or hot model writes them."""
    pool = sorted(set(tokenizer.encode(TEXT + "\ufffd a뒁b😀")))
    rng = random.Random(5)
    for _ in range(200):
        ids = tuple(rng.choices(pool, k=rng.randint(0, 60)))
        text = "".join(stream(tokenizer, ids))
        full = tokenizer.decode(ids)
        assert text in (full, full.removesuffix("\ufffd"))


def test_a_replacement_mark_of_the_model_itself_is_kept(tokenizer: ChatTokenizer) -> None:
    ids = tokenizer.encode("x\ufffd")
    assert "".join(stream(tokenizer, ids)) == "x\ufffd"


def test_control_ids_give_no_text() -> None:
    tokenizer = ScriptedTokenizer()
    ids = (*tokenizer.encode("a"), *sorted(tokenizer.control_ids), *tokenizer.encode("b"))
    assert "".join(stream(tokenizer, ids)) == "ab"


@pytest.mark.parametrize(
    ("stops", "text", "expected", "stopped"),
    [
        (("\nUser:",), "Yes.\nUser: no", "Yes.", True),
        (("\nUser:",), "Yes.\nUse it", "Yes.\nUse it", False),
        (("끝.",), "이것이 끝. 아니", "이것이 ", True),
        (("abab",), "ababab", "", True),
        (("aab",), "aaab", "a", True),
        (("abcd", "bc"), "abcd", "a", True),
        (("",), "text", "text", False),
        ((), "text", "text", False),
        (("x", "yx"), "ayx", "a", True),
    ],
)
def test_stop_strings_however_the_text_arrives(
    stops: tuple[str, ...], text: str, expected: str, stopped: bool
) -> None:
    for width in range(1, len(text) + 1):
        matcher = StopMatcher(stops)
        shown = ""
        for start in range(0, len(text), width):
            shown += matcher.push(text[start : start + width])
            assert expected.startswith(shown), "a part of a stop string was shown"
        shown += matcher.flush()
        assert (shown, matcher.stopped) == (expected, stopped)


def test_ids_stand_for_the_text_also_when_it_was_cut() -> None:
    tokenizer = ScriptedTokenizer()
    out = TextStream(tokenizer, ["STOP"])
    shown = "".join(out.push(i) for i in tokenizer.encode("one twoSTOP three")) + out.finish()
    assert (shown, out.text, out.stopped) == ("one two", "one two", True)
    assert tokenizer.decode(out.token_ids) == "one two"
    half = TextStream(tokenizer)
    for i in tokenizer.encode("한국어")[:1]:
        half.push(i)
    half.finish()
    assert tokenizer.decode(half.token_ids) == half.text == "한국"
    whole = TextStream(tokenizer)
    ids = tokenizer.encode("plain words")
    for i in ids:
        whole.push(i)
    whole.finish()
    assert whole.token_ids == ids
