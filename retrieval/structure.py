"""The parts of a document that chunks are packed from: headings, sentences, table rows. Knows no
tokens."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from retrieval.sentences import Span, is_row, is_rule, sentence_cells
from retrieval.types import CleanDocument, Passage

HEADING_MEDIA = frozenset({"md", "docx", "html", "pptx", "xlsx", "odt", "odp", "epub", "mail"})
SENTENCE, PARAGRAPH, HEADING = 0, 1, 2
MAX_ROW_LINES = 50
"""A quoted CSV cell longer than this is taken for a stray quote mark."""

_HEADING = re.compile(r"(#{1,6})[ \t]+(\S.*?)[ \t]*#*[ \t]*$")
_DEFINITION = re.compile(
    r"\s*(?:(?:export|public|private|protected|static|abstract|final|async|pub|default|unsafe)\s+)*"
    r"(?:def|class|function|func|fn|interface|struct|enum|trait|impl|module|namespace|type|object|"
    r"record|package|CREATE\s+TABLE)\b.{0,110}$|\s*\w[\w<>\[\],:*&\s]{0,80}\([^;]{0,110}\)\s*\{$",
    re.IGNORECASE,
)
_CLOSING = re.compile(r"[\])};,]*(?:end)?[\])};,]*")
_FENCE = re.compile(r"\s*(```|~~~)")
_FENCES = re.compile(r"```|~~~")


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
        elif is_row(line):
            stop = _run_end(text, lines, index)
            yield from _table(text, lines[index:stop], names)
            index = stop
        else:
            stop = _paragraph_end(text, lines, index, headings=headings)
            yield from _sentences(text, (start, lines[stop - 1][1]), names)
            index = stop


def _run_end(text: str, lines: list[Span], index: int) -> int:
    while index < len(lines) and is_row(text[slice(*lines[index])]):
        index += 1
    return index


def _table(text: str, rows: list[Span], path: tuple[str, ...]) -> Iterator[Atom]:
    """Rows of a Markdown table. With a rule under its first row, that row is the header."""
    ruled = len(rows) > 1 and is_rule(text[slice(*rows[1])])
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
        elif empty or is_row(line) or _FENCE.match(line) or (headings and _HEADING.match(line)):
            break
        index += 1
    return index


def _sentences(text: str, span: Span, path: tuple[str, ...]) -> Iterator[Atom]:
    for number, (start, end) in enumerate(sentence_cells(text, *span)):
        yield Atom(start, end, PARAGRAPH if number == 0 else SENTENCE, path)


def context_at(chunk: Passage, start: int, document: CleanDocument | None = None) -> str:
    """Heading path and table header that hold at a place in a chunk; none for one before it.

    Without the document it is a guess which lines are headings, and of which level those above
    the chunk are.
    """
    if start == chunk.start:
        return chunk.context
    if start < chunk.start:
        return ""
    path, _, header = chunk.context.rpartition("\n")
    if not is_row(header):
        path, header = chunk.context, ""
    lines = chunk.text[: start - chunk.start].split("\n")
    line_end = chunk.text.find("\n", start - chunk.start)
    rest = chunk.text[start - chunk.start : None if line_end < 0 else line_end]
    lines[-1] += rest
    headed = document is None or document.media in HEADING_MEDIA
    if headed and any(_HEADING.match(line) for line in lines[:-1]):
        path = _path_below(chunk, path, lines[:-1], document)
    return "\n".join(filter(None, (path, _header_over(lines, header))))


def _header_over(lines: list[str], header: str) -> str:
    """The header row of the table whose row the last line is; `header` holds over the first."""
    top = len(lines) - 1
    if top > 0 and not lines[top].lstrip().startswith("|"):
        return ""
    while top > 1 and is_row(lines[top - 1]):
        top -= 1
    if top == 1 and (is_row(lines[0]) or header):
        top = 0
    if top + 1 < len(lines) and is_row(lines[top]) and is_rule(lines[top + 1]):
        return lines[top].strip() if top + 2 < len(lines) else ""
    return header if top == 0 else ""


def _path_below(chunk: Passage, path: str, lines: list[str], document: CleanDocument | None) -> str:
    """The path that holds below the last of these lines, which begin a chunk under `path`."""
    above = document.text[: chunk.start] if document else ""
    fenced = _fenced_at_end(above)
    names = list(_levels(path.split(" > ") if path else [], above))
    for line in lines:
        if _FENCE.match(line):
            fenced = not fenced
        elif not fenced and (heading := _HEADING.match(line)):
            level = len(heading[1])
            names = [*(item for item in names if item[0] < level), (level, heading[2])]
    return " > ".join(name for _, name in names)


def _fenced_at_end(text: str) -> bool:
    marks = (match.start() for match in _FENCES.finditer(text))
    fences = [at for at in marks if not text[text.rfind("\n", 0, at) + 1 : at].strip()]
    return len(fences) % 2 == 1


def _levels(path: list[str], above: str) -> Iterator[tuple[int, str]]:
    """Of each heading of a path its level: as it stands above, or by its place in the path."""
    for place, name in enumerate(path, start=1):
        at = max(above.rfind(f"# {name}\n"), above.rfind(f"# {name} "), above.rfind(f"#\t{name}\n"))
        marks = above[above.rfind("\n", 0, max(at, 0)) + 1 : at + 1]
        yield (len(marks) if at >= 0 and marks.strip("#") == "" else place), name
