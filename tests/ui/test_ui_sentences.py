"""Sentences of other rooms in the language of the page."""

from __future__ import annotations

import json
import re

from chatbot.ui.sentences import in_language
from tests.conftest import ROOT


def test_sentences_of_other_rooms_are_korean_where_they_are_known() -> None:
    said = "This file has 12.5 MiB, 10 MiB are allowed; split it or raise the limit."
    korean = in_language("ko", said)
    assert "12.5 MiB" in korean and re.search("[가-힣]", korean)
    assert in_language("en", said) == said
    assert (
        in_language("ko", "Something nobody has translated.") == "Something nobody has translated."
    )


def test_every_translated_sentence_keeps_its_blanks() -> None:
    folder = ROOT / "chatbot" / "ui" / "locales"
    pairs = json.loads((folder / "sentences.ko.json").read_text("utf-8"))
    for english, korean in pairs.items():
        assert set(re.findall(r"\{(\w+)\}", korean)) <= set(re.findall(r"\{(\w+)\}", english))
