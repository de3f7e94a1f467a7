"""Both languages of the page have the same sentences."""

from __future__ import annotations

import string
from typing import get_args

import pytest

from chatbot.attachments import attachment_name
from chatbot.messages import (
    Dropped,
    Notice,
    Segment,
)
from chatbot.settings import Settings
from chatbot.ui.i18n import notice_text, pick_language, reason_text, table, tr
from chatbot.ui.options_html import NAMES, Form, options_html
from chatbot.ui.prompt_html import KINDS, trace_html
from tests.ui.samples import trace


def test_both_tables_have_the_same_keys_and_blanks() -> None:
    english, korean = table("en"), table("ko")
    assert english.keys() == korean.keys()
    for key in english:
        assert blanks(english[key]) >= blanks(korean[key]), key
        assert english[key].strip() and korean[key].strip()


def blanks(template: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(template) if name}


def test_every_kind_and_finish_has_words() -> None:
    for kind in KINDS:
        assert tr("ko", f"kind.{kind}")


@pytest.mark.parametrize(
    ("chosen", "setting", "accept", "language"),
    [
        ("", "auto", "ko-KR,ko;q=0.9,en;q=0.8", "ko"),
        ("", "auto", "fr,en;q=0.8,ko;q=0.5", "en"),
        ("", "auto", "fr", "en"),
        ("", "ko", "en", "ko"),
        ("en", "ko", "ko", "en"),
        ("<script>", "auto", "", "en"),
    ],
)
def test_language_choice(chosen: str, setting: str, accept: str, language: str) -> None:
    assert pick_language(chosen=chosen, setting=setting, accept=accept) == language


def test_notices_are_translated_and_unknown_ones_keep_their_sentence() -> None:
    known = Notice("documents_passages", "English.", {"passages": 2, "found": 1200})
    assert "1,200" in notice_text("ko", known)
    assert notice_text("ko", Notice("documents_passages", "English.", {})) == "English."
    assert notice_text("ko", Notice("new_code", "English.")) == "English."


def test_a_long_message_gets_a_document_in_its_own_language() -> None:
    assert attachment_name("긴 글 " * 9).startswith("긴 메시지 36자 (")
    assert attachment_name("a word " * 9).startswith("Message of 63 characters (")


def test_reasons_are_translated_with_their_numbers() -> None:
    reason = "1200 oldest turns: folded into the summary, and searched"
    assert "1,200" in reason_text("ko", reason) and "요약" in reason_text("ko", reason)
    assert reason_text("ko", "no room") == "자리가 없음"
    assert reason_text("ko", "another reason") == "another reason"
    many = trace(dropped=(Dropped(Segment("turn", 0, ""), reason),))
    assert 'class="piece many"' in trace_html("en", many)


def test_every_choice_of_a_setting_has_words_and_keeps_its_value() -> None:
    for name in NAMES:
        for choice in get_args(Settings.model_fields[name].annotation):
            if isinstance(choice, str):
                assert f"choice.{name}.{choice}" in table("ko")
    drawn = options_html("ko", Form(Settings()))
    assert '<option value="keep" selected>그대로 둠</option>' in drawn
