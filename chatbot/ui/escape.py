"""Turns text into HTML or Markdown that shows it literally. Knows no conversation and no page.

The page renders replies as Markdown, so every character that could open a tag or an entity is
written as a numeric entity, outside of code only: inside of code Markdown escapes by itself.
"""

from __future__ import annotations

import html
import re

MARK_OPEN, MARK_CLOSE = "\ue000", "\ue001"
"""Stand around a statement that no source supports; they become our own <mark> element."""

_TEMPLATE = str.maketrans({"$": "&#36;", "{": "&#123;", "}": "&#125;", "`": "&#96;"})
_PUNCTUATION = re.compile(r"[!-/:-@\[-`{-~]")
_FENCE = re.compile(r"^\s*(?:>\s?)*(?:[-*+]\s+|\d{1,9}[.)]\s+)?(`{3,}|~{3,})([^`]*)$")
_LIST_ITEM = re.compile(r"^\s{0,3}(?:[-*+]|\d{1,9}[.)])\s+")
_TICKS = re.compile(r"`+")
_OWN_FENCE = "~" * 24
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
    parts: list[str] = []
    prose: list[str] = []
    for is_code, line in _lines(text):
        if is_code:
            parts += _prose(prose)
            prose = []
            parts.append(_unmarked(line))
        else:
            prose.append(line)
    parts += _prose(prose)
    return "\n".join(parts)


def _literal_line(line: str) -> str:
    body = line.lstrip(" \t")
    indent = line[: len(line) - len(body)].expandtabs(4)
    body = _PUNCTUATION.sub(lambda found: _entity(found.group()), body)
    # A digit before a dot would start a list; the dot is an entity by now. Runs of spaces stay.
    body = re.sub(r" (?= )", "\u00a0", body)
    return "\u00a0" * len(indent) + body


def _entity(character: str) -> str:
    return f"&#x{ord(character):05x};"


def _lines(text: str) -> list[tuple[bool, str]]:
    """Each line with whether it is code; indented code is rewritten as fenced code."""
    found: list[tuple[bool, str]] = []
    fence = ""
    after_blank, in_list, indented = True, False, False
    for line in text.split("\n"):
        opening = _FENCE.match(line)
        deep = bool(line.strip()) and line.startswith(("    ", "\t")) and not in_list
        if indented and not deep and line.strip():
            found.append((True, _OWN_FENCE))
            indented = False
        if fence:
            found.append((True, line))
            closes = opening and not opening[2].strip() and opening[1].startswith(fence)
            fence = "" if closes else fence
        elif deep and (after_blank or indented):
            found += [] if indented else [(True, _OWN_FENCE)]
            found.append((True, line.expandtabs(4)[4:]))
            indented = True
        elif opening:
            fence = opening[1]
            found.append((True, line))
        else:
            in_list = bool(_LIST_ITEM.match(line)) or (in_list and line[:1] in ("", " ", "\t"))
            found.append((indented, line))
        after_blank = not line.strip()
    return [*found, (True, _OWN_FENCE)] if indented else found


def _prose(lines: list[str]) -> list[str]:
    """Escape text between code blocks, paragraph by paragraph (code spans end with one)."""
    if not lines:
        return []
    blocks = re.split(r"(\n[ \t]*\n)", "\n".join(lines))
    return ["".join(_inline(block) for block in blocks)]


def _inline(block: str) -> str:
    shown: list[str] = []
    at = 0
    while at < len(block):
        opening = _TICKS.search(block, at)
        if not opening:
            break
        closing = _closing(block, opening)
        end = opening.end() if closing is None else closing
        shown.append(_escaped(block[at : opening.start()]))
        shown.append(
            block[opening.start() : end]
            if closing is None
            else _unmarked(block[opening.start() : end])
        )
        at = end
    shown.append(_escaped(block[at:]))
    return "".join(shown)


def _closing(block: str, opening: re.Match[str]) -> int | None:
    """Where the code span that `opening` starts ends, or None if it starts none."""
    before = block[: opening.start()]
    if (len(before) - len(before.rstrip("\\"))) % 2:
        return None
    for ticks in _TICKS.finditer(block, opening.end()):
        if len(ticks.group()) == len(opening.group()):
            return ticks.end()
    return None


def _escaped(text: str) -> str:
    text = text.replace("&", _entity("&")).replace("<", _entity("<"))
    text = _IMAGE.sub(_entity("!"), text)
    text = text.replace(MARK_OPEN, '<mark class="unsupported">')
    return text.replace(MARK_CLOSE, "</mark>")


def _unmarked(text: str) -> str:
    return text.replace(MARK_OPEN, "").replace(MARK_CLOSE, "")
