"""Text of people and models is shown as text, whatever stands in it."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

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
def test_code_is_shown_as_it_is(code: str) -> None:
    read = MarkdownIt("commonmark")
    assert read.render(safe_markdown(code)) == read.render(code)


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


FENCES = ("`", "``", "```", "~~~", "~" * 25, "\\")
BLOCKS = ("- ", "1. ", "10) ", "> ", ">", "# ", "|", "---", "a", "x\n<b>\n")
SPACES = (" ", "  ", "    ", "\t", "\n", "\n", "\n\n", "\r", "\u00a0")
PIECES = (*FENCES, *BLOCKS, *SPACES, "<img src=x>", "![p](//x)")


@settings(max_examples=1500, deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=24).map("".join))
def test_no_tag_or_picture_comes_out_of_any_mix_of_blocks(text: str) -> None:
    """Read by a whole CommonMark parser with tables, which lets raw HTML through."""
    shown = MarkdownIt("commonmark", {"html": True}).enable("table").render(safe_markdown(text))
    assert "<img" not in shown
    assert "<b>" not in shown


@pytest.mark.parametrize(
    "text",
    [
        "`\n# <img src=x> `",
        "- ```\nx\n<img src=x>",
        "\u00a0```\n<img src=x>",
        "```\n- ```\n```\n<img src=x>",
        "    code\n    " + "~" * 24 + "\n    <img src=x>",
        "a ` b\nc ` <img src=x> ` d",
        "| a | b |\n|---|---|\n| ` | <img src=x> ` |",
        "> ```\n<img src=x>",
        "`\r# <img src=x> `",
    ],
)
def test_code_ends_where_its_block_ends(text: str) -> None:
    shown = MarkdownIt("commonmark", {"html": True}).enable("table").render(safe_markdown(text))
    assert "<img" not in shown
