"""Both languages of the page have the same sentences."""

from __future__ import annotations

import re
import string
from typing import get_args

import pytest

from chatbot.attachments import attachment_name
from chatbot.engine.ladder import step_notice
from chatbot.messages import (
    Dropped,
    Notice,
    Segment,
)
from chatbot.settings import Settings
from chatbot.ui.i18n import notice_text, pick_language, reason_text, table, tr, why_text
from chatbot.ui.options_html import NAMES, Form, options_html
from chatbot.ui.prompt_html import KINDS, trace_html
from tests.conftest import ROOT
from tests.ui.samples import trace

# Where the checks of a summary name what they find, and how.
GATES = [*(ROOT / "chatbot").glob("gate_*.py"), ROOT / "chatbot" / "summary_gate.py"]
REASON = re.compile(r"""(?:return |yield |\[)f?"([a-z][a-z ]+?)(?:: [^"]*)?"(?: if|\n| for)""")


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


def test_a_step_without_a_reply_was_only_tried() -> None:
    step = step_notice("no_cache")
    assert "this reply was made" in notice_text("en", step)
    assert "tried" in notice_text("en", step, without_reply=True)
    assert "해 보았" in notice_text("ko", step, without_reply=True)


def test_why_a_summary_was_refused_leaves_only_quoted_words_as_they_are() -> None:
    assert why_text("ko", "over its cap: 90 of 60 tokens") == "너무 긺: 90 토큰 (기준 60)"
    assert why_text("ko", "language: en instead of ko") == "다른 언어: 한국어 대신 영어"
    assert why_text("ko", "did not end by itself: length") == "중간에 끊김: 최대 길이"
    assert why_text("ko", "invented: Bob") == "대화에 없는 내용: Bob"
    found = {kind for path in GATES for kind in REASON.findall(path.read_text("utf-8"))}
    assert {"lost", "role text", "skeleton", "only about the last turn"} <= found
    assert [kind for kind in found if f"why.{kind}" not in table("ko")] == []


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
