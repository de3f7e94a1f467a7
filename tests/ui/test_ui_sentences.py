"""Sentences of other rooms in the language of the page."""

from __future__ import annotations

import json
import re

import pytest

from chatbot.engine.failures import failed, out_of_memory
from chatbot.engine.remote_faults import lost, silent, unreachable
from chatbot.ui.sentences import in_language
from retrieval.ingest_reports import empty_message
from retrieval.types import CleanDocument
from tests.conftest import ROOT


def test_sentences_of_other_rooms_are_korean_where_they_are_known() -> None:
    said = "This file has 12.5 MiB, 10 MiB are allowed; split it or raise the limit."
    korean = in_language("ko", said)
    assert "12.5 MiB" in korean and re.search("[가-힣]", korean)
    assert in_language("en", said) == said
    assert (
        in_language("ko", "Something nobody has translated.") == "Something nobody has translated."
    )


def spoken(text: str) -> str:
    """The Korean of a text, without what stands in brackets or is a name."""
    names = r"\(.*?\)|--[a-z-]+|[a-z]+_[a-z_]+|https?:\S+|nowhere\S*"
    return re.sub(names, "", in_language("ko", text))


@pytest.mark.parametrize(
    "sentence",
    [
        out_of_memory(1200, 3, needed_bytes=4 << 30, weights_bytes=3 << 30, free_bytes=1 << 29),
        failed(RuntimeError("device-side assert")),
        str(lost("http://nowhere:1/v1")),
        str(silent("http://nowhere:1/v1", 30.0)),
        str(unreachable("http://nowhere:1/v1")),
        "nowhere/big does not fit: with a window of 4096 tokens it takes 9.10 GiB and 2.00 GiB are "
        "free in memory. Choose --window-tokens 512 or less.",
        "This replaces the earlier version of “a.pdf”. No text on pages 1-3, 7: nothing is there.",
        empty_message(CleanDocument("a", "text/plain", "", ())),
        "Documents are searched by their words only for now. The embedding model nowhere/vectors "
        "is not on this machine and the hub cannot be reached; check the network, or set "
        "--embedding-model to a local folder, embedded or none.",
    ],
)
def test_what_people_meet_most_leaves_no_english_word(sentence: str) -> None:
    assert re.search("[가-힣]", spoken(sentence))
    words = re.findall("[A-Za-z]{3,}", spoken(sentence))
    assert set(words) <= {"GiB", "pdf", "quantization", "embedded", "none"}, words


def test_pages_are_told_in_korean_and_known_sentences_among_unknown_ones() -> None:
    assert "1-3, 7쪽" in in_language("ko", "No text on pages 1-3, 7: nothing is there.")
    mixed = in_language("ko", "Nobody knows this. This file is already in the library.")
    assert mixed == "Nobody knows this. 이미 있는 파일입니다."


def test_every_translated_sentence_keeps_its_blanks() -> None:
    folder = ROOT / "chatbot" / "ui" / "locales"
    pairs = json.loads((folder / "sentences.ko.json").read_text("utf-8"))
    for english, korean in pairs.items():
        assert set(re.findall(r"\{(\w+)\}", korean)) <= set(re.findall(r"\{(\w+)\}", english))
