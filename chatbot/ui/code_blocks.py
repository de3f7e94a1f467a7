"""Finds the code blocks of a Markdown text and writes them so that every reader finds the same.

What ends a code block depends on the list or quote that it stands in, and readers differ in how
they take odd indents. So blocks are written anew: with the indent that their container has, and
with an end of their own wherever the container ends. Source: CommonMark 0.31, sections 4.4 to 5.2.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_QUOTES = re.compile(r" {0,3}>[ ]?")
_MARKER = re.compile(r"([-*+]|[0-9]{1,9}[.)]) {1,4}(?=\S)")
_FENCE = re.compile(r"(`{3,}(?=[^`]*$)|~{3,})(.*)$")
_LANGUAGE = re.compile(r"[<>&!|\[\]]")
"""What the name of a block's language cannot have; a reader may take its line for text."""
_TABBED = re.compile(r"^[ \t>]*(?:(?:[-*+]|[0-9]{1,9}[.)])[ \t]+)?")
_TILDES = re.compile(r"~+")
_LEAST_TILDES = 24


@dataclass(frozen=True, slots=True)
class _Fence:
    """A block that is open: how its lines begin in the text, and how they are written."""

    mark: str
    quotes: int
    indent: int
    """Columns that a line has at least, behind its quotes, while its list goes on."""
    prefix: str

    def body(self, line: str) -> str | None:
        """The part of a line that is code; None when the container has ended before it."""
        for _ in range(self.quotes):
            if not (found := _QUOTES.match(line)):
                return None
            line = line[found.end() :]
        if self.indent and line[: self.indent].strip(" ") and line.strip(" "):
            return None
        return line[self.indent :]

    def closes(self, body: str) -> bool:
        """Whether a line of the block ends it."""
        mark = body.rstrip(" \t")
        indent = len(mark) - len(mark.lstrip(" "))
        mark = mark.lstrip(" ")
        same = set(mark) == {self.mark[0]} and len(mark) >= len(self.mark)
        return same and indent < 4


class _Splitter:
    """Goes through the lines of one text; used once."""

    def __init__(self, text: str) -> None:
        self._lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
        longest = max((len(run) for run in _TILDES.findall(text)), default=0)
        self._own_fence = "~" * max(_LEAST_TILDES, longest + 1)
        self._found: list[tuple[bool, str]] = []
        self._fence: _Fence | None = None
        self._after_blank = True
        self._list_indent = 0
        """Where the text of the newest list item begins; 0 outside of lists."""
        self._indented = False

    def lines(self) -> list[tuple[bool, str]]:
        """Each line with whether it is code."""
        for line in self._lines:
            self._take(line)
            self._after_blank = not line.strip(" \t")
        if self._indented:
            self._found.append((True, self._own_fence))
        return self._found

    def _take(self, line: str) -> None:
        if self._fence is not None and self._goes_on(self._fence, line):
            return
        is_blank = not line.strip(" \t")
        deep = line.startswith(("    ", "\t")) and not is_blank and not self._list_indent
        if self._indented and not deep and not is_blank:
            self._found.append((True, self._own_fence))
            self._indented = False
        if deep and (self._after_blank or self._indented):
            self._found += [] if self._indented else [(True, self._own_fence)]
            self._found.append((True, line.expandtabs(4)[4:]))
            self._indented = True
        elif not self._opens(line):
            self._follow_lists(line)
            self._found.append((self._indented, line))

    def _goes_on(self, fence: _Fence, line: str) -> bool:
        """Whether the line belongs to the open block; else the block is ended before it."""
        body = fence.body(line.expandtabs(4) if fence.prefix else line)
        if body is None or fence.closes(body):
            self._found.append((True, fence.prefix + self._own_fence))
            self._fence = None
            return body is not None
        self._found.append((True, fence.prefix + body))
        return True

    def _opens(self, line: str) -> bool:
        """Whether a block begins here; then its first line is written."""
        head = _TABBED.match(line)
        assert head is not None
        rest = head.group().expandtabs(4) + line[head.end() :]
        quotes = 0
        while found := _QUOTES.match(rest):
            quotes, rest = quotes + 1, rest[found.end() :]
        indent = len(rest) - len(rest.lstrip(" "))
        marker = _MARKER.match(rest, indent)
        fence = _FENCE.match(rest, marker.end() if marker else indent)
        if not fence:
            return False
        first = "> " * quotes
        if marker:
            inner, first = marker.end(), first + marker[1] + " "
            prefix = "> " * quotes + " " * (len(marker[1]) + 1)
            self._list_indent = 0 if quotes else len(prefix)
        else:
            inner = self._list_indent if not quotes and indent >= self._list_indent else 0
            first = prefix = first + " " * inner
            self._list_indent = inner
        self._fence = _Fence(fence[1], quotes, inner, prefix)
        if marker and not self._after_blank:
            # Not every number begins a list in the middle of a paragraph.
            self._found.append((True, ("> " * quotes).rstrip()))
        self._found.append((True, first + self._own_fence + _LANGUAGE.sub("", fence[2])))
        return True

    def _follow_lists(self, line: str) -> None:
        flat = line.expandtabs(4)
        indent = len(flat) - len(flat.lstrip(" "))
        if found := _MARKER.match(flat, indent):
            self._list_indent = found.end()
        elif line[:1] not in ("", " ", "\t"):
            self._list_indent = 0


def code_lines(text: str) -> list[tuple[bool, str]]:
    """The lines of `text` with whether each is of a code block.

    Indented blocks come back as fenced ones.
    """
    return _Splitter(text).lines()
