"""Text of people and models is shown as text, whatever stands in it."""

from __future__ import annotations

import re

import pytest

from chatbot.ui.escape import escape_html, literal_markdown, safe_markdown
from tests.ui.samples import NASTY, Tags, is_inert


def test_html_escape_is_literal_also_in_attributes_and_templates() -> None:
    is_inert(f'<p title="{escape_html(NASTY)}">{escape_html(NASTY)}</p>')
    assert Tags(f"<p>{escape_html(NASTY)}</p>").text == NASTY


@pytest.mark.parametrize("text", ["a < b", NASTY, "AT&amp;T", "![x](https://evil/?q=1)", "<b>"])
def test_no_tag_entity_or_image_survives_outside_code(text: str) -> None:
    shown = safe_markdown(text)
    assert "<" not in shown.replace("`<", "")
    assert "![" not in shown
    assert not re.search(r"&(?!#x000[0-9a-f]{2};)", shown.split("`")[0])


@pytest.mark.parametrize(
    "code",
    [
        "```python\nx: List<int> = a & b\n```",
        "~~~\n<b>\n```\n~~~",
        "- item\n  ```\n  <b>\n  ```",
        "`List<int>` and ``a ` <b>``",
        "````\n```\n<i>\n```\n````",
        "```\nopen <b> while streaming",
    ],
)
def test_code_is_left_as_it_is(code: str) -> None:
    assert safe_markdown(code).replace("&#x00026;", "") == code


def test_text_around_code_is_escaped_and_unclosed_ticks_open_nothing() -> None:
    shown = safe_markdown("a <b> `c<d>` <e>\n\n`not closed <f>\n\nnext <g>` end")
    assert "`c<d>`" in shown
    assert shown.count("<") == 1


def test_an_escaped_tick_starts_no_code() -> None:
    assert "<" not in safe_markdown(r"\`<b>\` and <i>")


def test_indented_code_becomes_fenced_and_keeps_its_indent() -> None:
    shown = safe_markdown("text\n\n    def f():\n        return <b>\n\n    more\nafter <i>")
    lines = shown.split("\n")
    assert "        return <b>"[4:] in lines
    assert lines[-1] == "after &#x0003c;i>"
    assert sum(line.startswith("~~~~~~") for line in lines) == 2


def test_questions_show_markup_and_indents_literally() -> None:
    shown = literal_markdown("# no *title*\n    x = 1\n1. no list\n<b>")
    assert not set("#*<>_[`").intersection(re.sub(r"&#x[0-9a-f]{5};", "", shown))
    assert "\n\u00a0\u00a0\u00a0\u00a0x" in shown
    assert not re.search(r"(?m)^\d+\.", shown)
