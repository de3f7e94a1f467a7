"""The parts of a document that chunks are packed from: headings, sentences, table rows. Knows no
tokens."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from retrieval.sentences import Span, sentence_cells
from retrieval.types import CleanDocument

HEADING_MEDIA = frozenset({"md", "docx", "html", "pptx", "xlsx", "odt", "odp", "epub", "mail"})
SENTENCE, PARAGRAPH, HEADING = 0, 1, 2
MAX_ROW_LINES = 50
"""A quoted CSV cell longer than this is taken for a stray quote mark."""

_HEADING = re.compile(r"(#{1,6})[ \t]+(\S.*?)[ \t]*#*[ \t]*$")
_RULE = re.compile(r"\s*\|?\s*:?-{2,}:?\s*(\|\s*:?-{2,}:?\s*)*\|?\s*$")
_DEFINITION = re.compile(
    r"\s*(?:(?:export|public|private|protected|static|abstract|final|async|pub|default|unsafe)\s+)*"
    r"(?:def|class|function|func|fn|interface|struct|enum|trait|impl|module|namespace|type|object|"
    r"record|package|CREATE\s+TABLE)\b.{0,110}$|\s*\w[\w<>\[\],:*&\s]{0,80}\([^;]{0,110}\)\s*\{$",
    re.IGNORECASE,
)
_CLOSING = re.compile(r"[\])};,]*(?:end)?[\])};,]*")
_FENCE = re.compile(r"\s*(```|~~~)")


@dataclass(frozen=True, slots=True)
class Atom:
    """A part that chunks do not cut. Atoms follow each other without gaps.

    `strength` says how good a cut before it is: `HEADING` and more above `PARAGRAPH` above
    `SENTENCE`. `path` holds the headings it stands under, `header` the header row of its table.
    """

    start: int
    end: int
    strength: int
    path: tuple[str, ...] = ()
    header: str = ""


def atoms(document: CleanDocument) -> list[Atom]:
    """All atoms of a document, in order; together they cover its text exactly."""
    if document.media == "csv":
        return list(_csv_rows(document.text))
    records = document.media == "json" and document.text.startswith("|")
    if document.media in ("code", "json") and not records:
        return list(_code(document.text))
    return list(_prose(document.text, headings=document.media in HEADING_MEDIA))


def _lines(text: str) -> list[Span]:
    ends = [match.end() for match in re.finditer("\n", text)]
    if not ends or ends[-1] < len(text):
        ends.append(len(text))
    return list(zip([0, *ends[:-1]], ends, strict=True))


def _csv_rows(text: str) -> Iterator[Atom]:
    """Rows of a CSV text; a quoted cell may hold line ends. The first row is the header."""
    header = ""
    lines = _lines(text)
    index = 0
    while index < len(lines):
        start, end = lines[index]
        taken = index + 1
        while text.count('"', start, end) % 2 and taken < len(lines):
            if taken - index > MAX_ROW_LINES:
                taken, end = index + 1, lines[index][1]
                break
            end = lines[taken][1]
            taken += 1
        yield Atom(start, end, PARAGRAPH, header=header)
        header = header or text[start:end].strip()
        index = taken


def _code(text: str) -> Iterator[Atom]:
    """Lines of source code, each under the definitions that it is set in below.

    A cut is best before what starts at the margin behind an empty line.
    """
    path: list[tuple[int, str]] = []
    empty = True
    for start, end in _lines(text):
        line = text[start:end].rstrip()
        indent = len(line) - len(line.lstrip())
        strength = SENTENCE
        if line and empty:
            strength = PARAGRAPH if indent else HEADING
        if line and not _CLOSING.fullmatch(line.strip()):
            path = [item for item in path if item[0] < indent]
        yield Atom(start, end, strength, tuple(name for _, name in path))
        if _DEFINITION.match(line):
            path.append((indent, line.strip()))
        empty = not line


def _prose(text: str, *, headings: bool) -> Iterator[Atom]:
    path: list[tuple[int, str]] = []
    lines = _lines(text)
    index = 0
    fenced = False
    while index < len(lines):
        start, end = lines[index]
        line = text[start:end].rstrip("\n")
        names = tuple(name for _, name in path)
        heading = None if fenced or not headings else _HEADING.match(line)
        if _FENCE.match(line) or fenced:
            fenced = fenced != bool(_FENCE.match(line))
            yield Atom(start, end, SENTENCE if fenced else PARAGRAPH, names)
            index += 1
        elif heading:
            level = len(heading[1])
            path = [item for item in path if item[0] < level]
            yield Atom(start, end, HEADING + 6 - level, tuple(name for _, name in path))
            path.append((level, heading[2]))
            index += 1
        elif _is_row(line):
            stop = _run_end(text, lines, index)
            yield from _table(text, lines[index:stop], names)
            index = stop
        else:
            stop = _paragraph_end(text, lines, index, headings=headings)
            yield from _sentences(text, (start, lines[stop - 1][1]), names)
            index = stop


def _is_row(line: str) -> bool:
    stripped = line.strip()
    return stripped.startswith("|") and stripped.endswith("|") and len(stripped) > 2


def _run_end(text: str, lines: list[Span], index: int) -> int:
    while index < len(lines) and _is_row(text[slice(*lines[index])]):
        index += 1
    return index


def _table(text: str, rows: list[Span], path: tuple[str, ...]) -> Iterator[Atom]:
    """Rows of a Markdown table. With a rule under its first row, that row is the header."""
    ruled = len(rows) > 1 and bool(_RULE.match(text[slice(*rows[1])]))
    header = text[slice(*rows[0])].strip() if ruled else ""
    if ruled:  # the header row and its rule are one atom
        yield Atom(rows[0][0], rows[1][1], PARAGRAPH, path)
        rows = rows[2:]
    for number, (start, end) in enumerate(rows):
        first = number == 0 and not ruled
        yield Atom(start, end, PARAGRAPH if first else SENTENCE, path, header)


def _paragraph_end(text: str, lines: list[Span], index: int, *, headings: bool) -> int:
    """The line after the paragraph at `index` and the empty lines that follow it."""
    empty = False
    while index < len(lines):
        line = text[slice(*lines[index])].rstrip("\n")
        if not line.strip():
            empty = True
        elif empty or _is_row(line) or _FENCE.match(line) or (headings and _HEADING.match(line)):
            break
        index += 1
    return index


def _sentences(text: str, span: Span, path: tuple[str, ...]) -> Iterator[Atom]:
    for number, (start, end) in enumerate(sentence_cells(text, *span)):
        yield Atom(start, end, PARAGRAPH if number == 0 else SENTENCE, path)
