"""Turns text into HTML or Markdown that shows it literally. Knows no conversation and no page.

The page renders replies as Markdown, so every character that could open a tag or an entity is
written as a numeric entity, outside of code only: inside of code Markdown escapes by itself.
"""

from __future__ import annotations

import html
import re

from chatbot.ui.code_blocks import code_lines

MARK_OPEN, MARK_CLOSE = "\ue000", "\ue001"
"""Stand around a statement that no source supports; they become our own <mark> element."""

_TEMPLATE = str.maketrans({"$": "&#36;", "{": "&#123;", "}": "&#125;", "`": "&#96;"})
_PUNCTUATION = re.compile(r"[!-/:-@\[-`{-~]")
_TICKS = re.compile(r"`+")
_IMAGE = re.compile(r"!(?=\[)")


def escape_html(text: str) -> str:
    """`text` as HTML, for contents and quoted attributes; also inert as a page template."""
    return html.escape(text).translate(_TEMPLATE)


def literal_markdown(text: str) -> str:
    """Markdown that shows `text` as it was typed: no markup, with line breaks and indents."""
    shown = [_literal_line(line) for line in text.replace("\r\n", "\n").split("\n")]
    return "\n".join(shown)


def safe_markdown(text: str) -> str:
    """Markdown with the formatting of `text`, but no HTML and no images in it.

    Images become links, since fetching one would tell its server that the reply was read.
    """
    lines = (_unmarked(line) if code else _prose(line) for code, line in code_lines(text))
    return "\n".join(lines)


def _literal_line(line: str) -> str:
    body = line.lstrip(" \t")
    indent = line[: len(line) - len(body)].expandtabs(4)
    body = _PUNCTUATION.sub(lambda found: _entity(found.group()), body)
    # A digit before a dot would start a list; the dot is an entity by now. Runs of spaces stay.
    body = re.sub(r" (?= )", "\u00a0", body)
    return "\u00a0" * len(indent) + body


def _entity(character: str) -> str:
    return f"&#x{ord(character):05x};"


def _prose(line: str) -> str:
    """Escape a line outside of code blocks, all but its code spans.

    A span that goes on in the next line is shown with its ticks instead: where it ends depends on
    whether that line begins something else, such as a heading.
    """
    shown: list[str] = []
    at = 0
    while opening := _TICKS.search(line, at):
        before = line[at : opening.start()]
        is_escaped = (len(before) - len(before.rstrip("\\"))) % 2
        shown.append(_escaped(before[:-1] if is_escaped else before))
        end = None if is_escaped else _closing(line, opening)
        if end is None or _may_open(line[opening.start() : end], before):
            end = opening.start() + 1 if is_escaped else opening.end()
            shown.append(_entity("`") * (end - opening.start()))
        else:
            shown.append(_unmarked(line[opening.start() : end]))
        at = end
    return "".join([*shown, _escaped(line[at:])])


def _closing(line: str, opening: re.Match[str]) -> int | None:
    """Where the code span that `opening` starts ends, or None if it starts none."""
    for ticks in _TICKS.finditer(line, opening.end()):
        if len(ticks.group()) == len(opening.group()):
            return ticks.end()
    return None


def _may_open(span: str, before: str) -> bool:
    """Whether a code span would let out a tag or picture in it, were it read in another way.

    A row of a table ends its cell inside of it; some readers take ticks behind a tilde for text.
    """
    return ("<" in span or "![" in span) and ("|" in span or before.endswith("~"))


def _escaped(text: str) -> str:
    text = text.replace("&", _entity("&")).replace("<", _entity("<"))
    text = _IMAGE.sub(_entity("!"), text)
    text = text.replace(MARK_OPEN, '<mark class="unsupported">')
    return text.replace(MARK_CLOSE, "</mark>")


def _unmarked(text: str) -> str:
    return text.replace(MARK_OPEN, "").replace(MARK_CLOSE, "")
