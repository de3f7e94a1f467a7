"""Where sentences begin and end, in English and Korean text. Knows no document and no model."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from unicodedata import combining

Span = tuple[int, int]
"""[start, end) in characters."""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_ABBREVIATIONS = _words(
    "mr mrs ms dr prof st sr jr vs etc e.g i.e cf al inc ltd co corp no nos vol fig figs eq p pp "
    "ch sec art dept est approx min max tel ext ca gen col capt lt sgt rev hon jan feb mar apr "
    "jun jul aug sep sept oct nov dec mon tue tues wed thu thur thurs fri sat sun a.m p.m u.s "
    "u.k u.n e.u ph.d m.d b.c a.d d.c"
)
# These may end a sentence; they do so when a capital follows.
_MAY_END = _words("etc inc ltd co corp a.m p.m u.s u.k u.n e.u ph.d m.d b.c a.d d.c jr")
_STARTERS = _words(
    "the a an he she it we i they you this that these those there but and so if when "
    "while after before my our his her their its for to what who how why please yes no"
)
_CLOSERS = "\"'”’)\\]」』》〉*_"
_STOP = re.compile(
    rf"[.!?…]+[{_CLOSERS}]*(?=\s|$)"  # the usual end
    rf"|[。！？｡]+[{_CLOSERS}]*"  # full-width marks need no space after them
    r"|(?<=[다요죠까음함임])[.!?]+(?=[가-힣])"  # Korean typed without a space
    # Polite endings typed without a full stop. Followed by a quoting particle they go on.
    r"|(?<=니다|세요|해요|예요|에요|어요|아요|네요|군요|나요|까요|지요)"
    r"(?=[ \t]+(?!라고|라는|라며|하고|라면|고\s|만\s)\S)"
)
_DATE = re.compile(r"\b(?:19|20)?\d\d\. ?\d{1,2}\. ?\d{1,2}\.$")
"""2024. 3. 15. in Korean writing; the sentence goes on after it, unless its line ends."""
_WORD_BEFORE = re.compile(r"[\w.]*\w$", re.UNICODE)
_NEW_BLOCK = re.compile(r"\s*(?:[-*+•·▪–>|#]|\d{1,3}[.)]\s|[A-Za-z가-하][.)]\s|[①-⑳]|```|~~~)")
_FENCE = re.compile(r"\s*(?:```|~~~)")
_RULE = re.compile(r"\s*\|?\s*:?-{2,}:?\s*(\|\s*:?-{2,}:?\s*)*\|?\s*$")
_JOINED = "\u200d\ufe0e\ufe0f"
_MIN_UNMARKED = 8
"""Characters that a Korean sentence without a full stop must have to be split off."""
_WRAPPED_LATIN, _WRAPPED_HANGUL = 50, 28
"""A line at least this long without an end mark counts as wrapped, not ended."""


def split_sentences(text: str) -> list[Span]:
    """Spans of the sentences of `text`, in order, without surrounding white space.

    Every character that is not white space lies in exactly one span. Headings, list items,
    table rows and lines of fenced code are spans of their own. Linear in the text's length.
    """
    spans: list[Span] = []
    for start, end, is_code in _blocks(text):
        if is_code:
            spans.extend(_stripped(text, start, end))
        else:
            previous = start
            for cut in _cuts(text, start, end):
                spans.extend(_stripped(text, previous, cut))
                previous = cut
            spans.extend(_stripped(text, previous, end))
    return spans


def sentence_cells(text: str, start: int = 0, end: int | None = None) -> list[Span]:
    """Spans that cover [start, end) without gaps, one a sentence with the white space after it."""
    end = len(text) if end is None else end
    spans = split_sentences(text[start:end])
    begins = [start, *(start + span[0] for span in spans[1:])]
    return list(zip(begins, [*begins[1:], end], strict=True)) if start < end else []


def trim_span(text: str, start: int, end: int) -> Span:
    """[start, end) without white space at its ends; empty at `start` if there is nothing else."""
    part = text[start:end]
    left = start + len(part) - len(part.lstrip())
    return (left, start + len(part.rstrip())) if left < end else (start, start)


def is_row(line: str) -> bool:
    """Whether a line is a row of a Markdown table."""
    stripped = line.strip()
    return stripped.startswith("|") and stripped.endswith("|") and len(stripped) > 2


def is_rule(line: str) -> bool:
    """Whether a line is the rule below the header row of a Markdown table."""
    return bool(_RULE.match(line))


def whole_rows(text: str, cells: Sequence[Span], *, all_rows: bool = False) -> list[range]:
    """The numbers of the cells that stay together: a row's, and header, rule and first row.

    With `all_rows` each line is one, also what is left of a row that chunks have parted.
    """
    groups: list[range] = []
    after_rule = False
    for number, (start, end) in enumerate(cells):
        rule = is_row(text[start:end]) and is_rule(text[start:end])
        if groups and (rule or after_rule or _inside_row(text, start, all_rows)):
            groups[-1] = range(groups[-1].start, number + 1)
        else:
            groups.append(range(number, number + 1))
        after_rule = rule
    return groups


def _inside_row(text: str, place: int, all_rows: bool) -> bool:
    begin = text.rfind("\n", 0, place) + 1
    if all_rows or not text[begin:place].strip():
        return bool(text[begin:place].strip())
    end = text.find("\n", place)
    return is_row(text[begin : len(text) if end < 0 else end])


def line_cells(text: str, start: int, end: int) -> list[Span]:
    """Spans that cover [start, end) without gaps, one a line. Rules stay with the header row."""
    cells: list[Span] = []
    while start < end:
        stop = text.find("\n", start, end) + 1 or end
        line = text[start:stop]
        if cells and (not line.strip() or (is_row(line) and is_rule(line))):
            cells[-1] = cells[-1][0], stop
        else:
            cells.append((start, stop))
        start = stop
    return cells


def byte_cells(text: str, start: int, end: int, n_bytes: int) -> list[Span]:
    """Spans of up to `n_bytes` in UTF-8 that cover [start, end), cut at spaces if these are near,
    else between any two letters."""
    cells: list[Span] = []
    while start < end:
        # One character longer than that is still one.
        fits = len(text[start : start + n_bytes].encode()[:n_bytes].decode(errors="ignore")) or 1
        stop = min(end, start + fits)
        if stop < end:
            space = max(text.rfind(mark, start + fits // 2, stop) for mark in " \t\n") + 1
            stop = space or _between_letters(text, start, stop)
        cells.append((start, stop))
        start = stop
    return cells


def _between_letters(text: str, start: int, place: int) -> int:
    """The place, or one before it that parts no letter from its accents or joined signs."""
    for stop in range(place, max(start, place - 16), -1):
        if not (combining(text[stop]) or text[stop] in _JOINED or text[stop - 1] == "\u200d"):
            return stop
    return place


def sentences(text: str) -> list[str]:
    """The sentences themselves, word for word."""
    return [text[start:end] for start, end in split_sentences(text)]


def _blocks(text: str) -> Iterator[tuple[int, int, bool]]:
    """Runs of lines that belong together; each line of fenced code is a run of its own."""
    in_code = False
    begin: int | None = None
    previous = ""
    position = 0
    for line in text.splitlines(keepends=True):
        end = position + len(line)
        fence = bool(_FENCE.match(line))
        alone = fence or in_code or not line.strip()
        if begin is not None and (alone or not _continues(previous, line)):
            yield begin, position, False
            begin = None
        if fence or in_code:
            yield position, end, True
            in_code = in_code != fence
        elif line.strip():
            begin = position if begin is None else begin
        previous, position = line, end
    if begin is not None:
        yield begin, position, False


def _continues(line: str, following: str) -> bool:
    """Whether a sentence may run on from `line` to the next line."""
    before, after = line.strip(), following.strip()
    if not before or before.startswith(("#", "|")) or _NEW_BLOCK.match(following):
        return False
    if after[0].islower():
        return True
    hangul = "가" <= before[-1] <= "힣" or "가" <= after[0] <= "힣"
    return len(before) >= (_WRAPPED_HANGUL if hangul else _WRAPPED_LATIN)


def _cuts(text: str, start: int, end: int) -> Iterator[int]:
    """Positions after which a new sentence begins, within one block."""
    sentence_start = start
    for match in _STOP.finditer(text, start, end):
        cut = match.end()
        if match.group() == "":
            is_end = cut - sentence_start >= _MIN_UNMARKED
        else:
            is_end = _ends(text, sentence_start, match, end)
        if is_end and text.count("`", sentence_start, cut) % 2 == 0:
            yield cut
            sentence_start = cut


def _ends(text: str, sentence_start: int, match: re.Match[str], end: int) -> bool:
    mark, after = match.group(), text[match.end() : min(end, match.end() + 40)].lstrip()
    following = after[:1]
    if not following:
        return True
    if mark[0] in ".…" and (len(mark.rstrip(_CLOSERS.replace("\\", ""))) > 1 or mark[0] == "…"):
        return not following.islower()
    if mark[-1] in "\"'”’" and following.islower():
        return False  # "Really?" he said
    if mark[0] != ".":
        return True
    before = _WORD_BEFORE.search(text, max(sentence_start, match.start() - 40), match.start())
    if before is not None and _DATE.search(
        text, max(sentence_start, match.start() - 14), match.end()
    ):
        return False
    return before is None or _full_stop_ends(
        before.group(), before.start() == sentence_start, after
    )


def _full_stop_ends(word: str, is_first: bool, after: str) -> bool:
    """Whether the full stop after `word` ends a sentence that goes on with `after`."""
    lower = word.lower()
    if lower in _ABBREVIATIONS:
        starts = re.match(r"[A-Za-z]+", after)
        return lower in _MAY_END and starts is not None and starts.group().lower() in _STARTERS
    if word.isdigit():
        # 2024. 3. 15. is one date, and a number alone is a list mark.
        return not (is_first or (len(word) <= 4 and after[0].isdigit()))
    if len(word) == 1 and word.isalpha():
        return not (is_first or (word.isupper() and word != "I"))  # list mark, J. Smith
    return True


def _stripped(text: str, start: int, end: int) -> list[Span]:
    span = trim_span(text, start, end)
    return [span] if span[0] < span[1] else []
