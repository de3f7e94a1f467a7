"""Reads HTML pages as a person would: the text in order. Runs nothing, fetches nothing.

Addresses of links are left out (their texts stay): on web pages they outnumber the words.
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

from bs4 import BeautifulSoup, Tag
from bs4.dammit import EncodingDetector

from retrieval.loaders.characters import sanitize
from retrieval.loaders.encoding import decode
from retrieval.loaders.markup import drop, to_markdown
from retrieval.loaders.parsed import Parsed, whole

_NEVER_TEXT = [
    "script", "style", "noscript", "template", "iframe", "object", "embed", "svg", "canvas",
    "audio", "video", "map", "input", "head", "title",
]  # fmt: skip
# Elements with lines or boxes of their own, which the converter to Markdown takes for plain text.
_BLOCKS = [
    "summary", "details", "legend", "fieldset", "form", "address", "header", "hgroup", "main",
    "figure", "dialog", "search",
]  # fmt: skip
_BOXES = ["output", "textarea", "select", "meter", "progress", "button"]
_HEADINGS = ["h1", "h2", "h3", "h4", "h5", "h6", "dt", "th", "summary", "legend"]
REPEATED_BUTTONS = 3
"""Buttons of one text from so many on, such as Copy or Edit, are tools and not text."""
_XHTML = re.compile(r"<html[^>]{0,2000}\sxmlns\s*=\s*[\"']http://www\.w3\.org/1999/xhtml")
# With it goes what it declares: entities are not opened.
_DECLARED = re.compile(
    r"\A\s*(?:<\?xml[^>]{0,500}\?>\s*)?<!DOCTYPE[^>\[]{0,1000}\[[^\]]{0,100000}\]\s*>",
    re.IGNORECASE,
)
_SHORT_CHARACTERS = 200
_AROUND = ["nav", "footer", "aside"]
_AROUND_ROLES = {"navigation", "contentinfo", "search", "complementary", "menu", "dialog"}
_HIDDEN = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.IGNORECASE)
# What pages call an encoding is what browsers take it for (WHATWG).
_MEANT = {
    "euc-kr": "cp949", "ks_c_5601-1987": "cp949", "ksc5601": "cp949", "x-windows-949": "cp949",
    "shift_jis": "cp932", "x-sjis": "cp932", "gb2312": "gb18030", "gbk": "gb18030",
    "iso-8859-1": "cp1252", "latin1": "cp1252", "us-ascii": "cp1252", "utf-16": "utf-8",
}  # fmt: skip


def read(path: Path, max_pages: int) -> Parsed:
    """Title and text as Markdown. Raises LoadError when the file is not text."""
    text, warnings = _page(path.read_bytes(), None)
    return whole(text, warnings)


def html_text(data: bytes, charset: str | None) -> str:
    """The text of a page that is part of another file; `charset` is what that file says of it."""
    return _page(data, charset)[0]


def _page(data: bytes, charset: str | None) -> tuple[str, tuple[str, ...]]:
    named = charset or EncodingDetector.find_declared_encoding(
        data, is_html=True, search_entire_document=False
    )
    declared = _MEANT.get(named.lower(), named) if named else None
    found = decode(data, declared)
    source = sanitize(found.text)  # NULs would come out as U+FFFD
    source = _DECLARED.sub("", source, count=1)
    soup = _soup(source)
    title = " ".join(soup.title.get_text().split()) if soup.title else ""
    warnings = [found.warning] if found.warning else []
    try:
        text = _text(soup)
        if len(text) < _SHORT_CHARACTERS:
            # Menus stay where they are nearly all there is.
            full = _text(_soup(source), around=True)
            text = full if len(full) > 3 * len(text) else text
    except RecursionError:
        text = "\n".join(soup.stripped_strings)
        warnings.append("This page is nested too deeply: its text was read without its layout.")
    return _titled(title, text), tuple(warnings)


def _soup(source: str) -> BeautifulSoup:
    """The elements as browsers see them: HTML may leave out end tags, which only lxml knows; in
    XHTML any element may close itself, such as `<title/>`, which lxml takes for open."""
    is_xhtml = _XHTML.search(source[:5000]) is not None
    return BeautifulSoup(source, "html.parser" if is_xhtml else "lxml")


def _text(soup: BeautifulSoup, *, around: bool = False) -> str:
    drop(soup, _NEVER_TEXT)
    for tag in [*soup.find_all(_is_hidden), *soup.select("li:has(> a[hreflang])")]:
        tag.decompose()  # the second: lists of the page's other languages
    if not around:
        for tag in soup.find_all(_is_around):
            tag.decompose()
    _drop_tools(soup)
    _part(soup)
    return to_markdown(soup, keep_links=False)


def _drop_tools(soup: BeautifulSoup) -> None:
    """Take out repeated buttons; those that open a section are its heading."""
    buttons = [(tag, " ".join(tag.get_text().split())) for tag in soup.find_all("button")]
    counts = Counter(text for _, text in buttons)
    for tag, text in buttons:
        is_heading = tag.has_attr("aria-expanded") or tag.find_parent(_HEADINGS)
        if counts[text] >= REPEATED_BUTTONS and not is_heading:
            tag.decompose()


def _part(soup: BeautifulSoup) -> None:
    """Nothing may stick to its neighbours. Of a choice all options are text."""
    for choice in soup.find_all("select"):
        options = (" ".join(option.get_text().split()) for option in choice.find_all("option"))
        choice.string = ", ".join(filter(None, options))
    for box in soup.find_all(_BOXES):
        if not str(box.previous_sibling or "").endswith(" "):
            box.insert_before(" ")
        box.insert_after(" ")
    for block in soup.find_all(_BLOCKS):
        block.name = "div"


def _is_hidden(tag: Tag) -> bool:
    """Nobody sees it, so nobody can have meant it to be quoted."""
    return tag.has_attr("hidden") or _HIDDEN.search(str(tag.get("style") or "")) is not None


def _is_around(tag: Tag) -> bool:
    """Menus and the like; within an article a footer or an aside belongs to it."""
    if tag.get("role") in _AROUND_ROLES or tag.name == "nav":
        return True
    return tag.name in _AROUND and tag.find_parent(["article", "main"]) is None


def _titled(title: str, text: str) -> str:
    """The title first, unless the text starts with it anyway."""
    lines = [line.lstrip("# ").casefold() for line in text.split("\n")[:5]]
    if not title or title.casefold() in lines:
        return text
    return f"# {title}\n\n{text}".strip()
