"""Writes automatic numbers ("제1조", "2.1", "(a)") into Word paragraphs as text.

Word does not store them; without this the articles of a contract would have no numbers.
Bullets stay what they are. Knows numbering only.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, field
from xml.etree import ElementTree

from retrieval.loaders.docx_xml import Element, q, run, val

_GANADA = "가나다라마바사아자차카타파하"
_CHOSUNG = "ㄱㄴㄷㄹㅁㅂㅅㅇㅈㅊㅋㅌㅍㅎ"
_DIGITS = "영일이삼사오육칠팔구"
_PLACES = ((1000, "천"), (100, "백"), (10, "십"), (1, ""))
_ROMAN = (
    (1000, "m"), (900, "cm"), (500, "d"), (400, "cd"), (100, "c"), (90, "xc"), (50, "l"),
    (40, "xl"), (10, "x"), (9, "ix"), (5, "v"), (4, "iv"), (1, "i"),
)  # fmt: skip


@dataclass(slots=True)
class _Level:
    format: str
    text: str
    start: int
    is_legal: bool


@dataclass(slots=True)
class Numbering:
    """What numbering.xml and styles.xml say, and how far each list has counted."""

    levels: dict[str, dict[int, _Level]] = field(default_factory=dict)  # by list (abstract) id
    lists: dict[str, str] = field(default_factory=dict)  # number id -> list id
    restarts: dict[str, dict[int, int]] = field(default_factory=dict)
    styles: dict[str, tuple[str, int]] = field(default_factory=dict)
    counts: dict[str, dict[int, int]] = field(default_factory=lambda: defaultdict(dict))


def write_numbers(body: Element, numbering: Element | None, styles: Element | None) -> None:
    """Changes `body`. Paragraphs that get a number as text are no list items any more."""
    if numbering is None:
        return
    state = _read(numbering, styles)
    for paragraph in body.iter(q("w:p")):
        found = _place(paragraph, state)
        if found is None:
            continue
        label = _next_label(*found, state)
        if label is not None:
            _write(paragraph, label)


def _read(numbering: Element, styles: Element | None) -> Numbering:
    state = Numbering()
    linked: dict[str, tuple[str, int]] = {}
    for abstract in numbering.iter(q("w:abstractNum")):
        list_id = val(abstract, "w:abstractNumId")
        state.levels[list_id] = {}
        for level in abstract.iter(q("w:lvl")):
            at = _number(val(level, "w:ilvl"), 0)
            state.levels[list_id][at] = _level(level)
            if style := val(level.find(q("w:pStyle"))):
                linked[style] = (list_id, at)
    for number in numbering.iter(q("w:num")):
        number_id = val(number, "w:numId")
        state.lists[number_id] = val(number.find(q("w:abstractNumId")))
        for override in number.iter(q("w:lvlOverride")):
            if (start := override.find(q("w:startOverride"))) is not None:
                at = _number(val(override, "w:ilvl"), 0)
                state.restarts.setdefault(number_id, {})[at] = _number(val(start), 1)
    if styles is not None:
        _read_styles(styles, linked, state)
    return state


def _level(level: Element) -> _Level:
    return _Level(
        val(level.find(q("w:numFmt"))) or "decimal",
        val(level.find(q("w:lvlText"))),
        _number(val(level.find(q("w:start"))), 1),
        level.find(q("w:isLgl")) is not None,
    )


def _read_styles(styles: Element, linked: dict[str, tuple[str, int]], state: Numbering) -> None:
    own: dict[str, tuple[str, int]] = {}
    based: dict[str, str] = {}
    for style in styles.iter(q("w:style")):
        style_id = val(style, "w:styleId")
        based[style_id] = val(style.find(q("w:basedOn")))
        properties = style.find(f"{q('w:pPr')}/{q('w:numPr')}")
        if properties is not None and (number := val(properties.find(q("w:numId")))):
            at = linked.get(style_id, ("", _number(val(properties.find(q("w:ilvl"))), 0)))[1]
            own[style_id] = (number, at)
    for style_id in based:
        ancestor, seen = style_id, set()
        while ancestor and ancestor not in own and ancestor not in seen:
            seen.add(ancestor)
            ancestor = based.get(ancestor, "")
        if ancestor in own:
            state.styles[style_id] = own[ancestor]


def _place(paragraph: Element, state: Numbering) -> tuple[str, int] | None:
    properties = paragraph.find(q("w:pPr"))
    if properties is None:
        return None
    inherited = state.styles.get(val(properties.find(q("w:pStyle"))))
    direct = properties.find(q("w:numPr"))
    if direct is None:
        return inherited
    number = val(direct.find(q("w:numId"))) or (inherited[0] if inherited else "")
    level = _number(val(direct.find(q("w:ilvl"))), inherited[1] if inherited else 0)
    return (number, level) if number else None


def _next_label(number_id: str, at: int, state: Numbering) -> str | None:
    """The number of this paragraph, counted on; None for bullets and unknown lists."""
    list_id = state.lists.get(number_id, "")
    levels = state.levels.get(list_id, {})
    if at not in levels or levels[at].format == "bullet":
        return None
    counts = state.counts[list_id]
    restart = state.restarts.get(number_id, {}).pop(at, None)
    if restart is not None:
        counts[at] = restart
    else:
        counts[at] = counts[at] + 1 if at in counts else levels[at].start
    for deeper in [level for level in counts if level > at]:
        del counts[deeper]
    if levels[at].format == "none":
        return ""

    def shown(found: re.Match[str]) -> str:
        level = int(found.group(1)) - 1
        meant = levels.get(level)
        if meant is None:
            return ""
        count = counts.setdefault(level, meant.start)
        return formatted(count, "decimal" if levels[at].is_legal else meant.format)

    return re.sub(r"%([1-9])", shown, levels[at].text)


def formatted(count: int, style: str) -> str:
    """One number in a numbering style of Word; unknown styles count in digits."""
    if style in {"upperLetter", "lowerLetter"} and count > 0:
        letter = chr(ord("a") + (count - 1) % 26) * ((count - 1) // 26 + 1)
        return letter.upper() if style == "upperLetter" else letter
    if style in {"upperRoman", "lowerRoman"} and 0 < count < 4000:
        return _roman(count).upper() if style == "upperRoman" else _roman(count)
    if style == "ganada" and count > 0:
        return _GANADA[(count - 1) % len(_GANADA)]
    if style == "chosung" and count > 0:
        return _CHOSUNG[(count - 1) % len(_CHOSUNG)]
    if style == "decimalEnclosedCircle" and 0 < count <= 20:
        return chr(ord("①") + count - 1)
    if style in {"koreanDigital", "koreanCounting", "koreanLegal"} and 0 < count < 10_000:
        return _korean(count)
    return f"{count:02d}" if style == "decimalZero" else str(count)


def _roman(count: int) -> str:
    text = ""
    for value, letters in _ROMAN:
        text += letters * (count // value)
        count %= value
    return text


def _korean(count: int) -> str:
    text = ""
    for value, place in _PLACES:
        digit, count = divmod(count, value)
        if digit:
            text += ("" if digit == 1 and place else _DIGITS[digit]) + place
    return text


def _write(paragraph: Element, label: str) -> None:
    properties = paragraph.find(q("w:pPr"))
    assert properties is not None
    for old in properties.findall(q("w:numPr")):
        properties.remove(old)
    none = ElementTree.SubElement(properties, q("w:numPr"))
    for name in ("w:ilvl", "w:numId"):
        ElementTree.SubElement(none, q(name)).set(q("w:val"), "0")
    if label and any(element.text for element in paragraph.iter(q("w:t"))):
        paragraph.insert(list(paragraph).index(properties) + 1, run(label + " "))


def _number(text: str, default: int) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 7 else default
