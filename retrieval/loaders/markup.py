"""HTML elements to Markdown text: what people read, without decoration. Knows no file.

Bold, italics and escapes are left out, since a quote from the text must read as the document
does. Tables come out in the one shape of `tables`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from bs4 import BeautifulSoup, Tag
from markdownify import MarkdownConverter

from retrieval.loaders.tables import cell_text, markdown_table

_DECORATION = ["b", "strong", "em", "i", "u", "mark", "span", "font"]
_LAYOUT_CHARACTERS = 2000
_MAX_SPAN = 100
_HOLDER = "x-text"  # stands for a table that is Markdown already
_SPACES = re.compile("[\u00a0\u2007\u202f]")
_UNSEEN = re.compile("[\u00ad\u200b\u2060\ufeff]")


class _Converter(MarkdownConverter):
    """markdownify with our own words for links, pictures, boxes and raised text."""

    def __init__(self, *, keep_links: bool) -> None:
        super().__init__(
            bullets="-",
            heading_style="atx",
            strip=_DECORATION,
            escape_asterisks=False,
            escape_underscores=False,
            newline_style="backslash",
        )
        self._keep_links = keep_links

    def convert_a(self, el: Tag, text: str, parent_tags: set[str]) -> str:
        """Text and, where wanted, the address. Jumps within the document are only text."""
        href = str(el.get("href") or "")
        if not self._keep_links or not text.strip() or not href.startswith(("http", "mailto:")):
            return "" if text.strip() in {"↑", "¶", "#"} else text
        target = href.removeprefix("mailto:")
        return text if text.strip() == target else f"{text} ({target})"

    def convert_img(self, el: Tag, text: str, parent_tags: set[str]) -> str:
        alt = " ".join(str(el.get("alt") or "").split())
        return f" {alt} " if alt else ""

    def convert_input(self, el: Tag, text: str, parent_tags: set[str]) -> str:
        if el.get("type") in {"checkbox", "radio"}:
            return "[x] " if el.has_attr("checked") else "[ ] "
        return "" if el.get("type") in {"hidden", "password"} else str(el.get("value") or "")

    def convert_sup(self, el: Tag, text: str, parent_tags: set[str]) -> str:
        """10 to the 5th must not read as 105."""
        return f"^{text}" if re.fullmatch(r"[-+−]?\w{1,3}", text.strip()) else text

    def convert_br(self, el: Tag, text: str, parent_tags: set[str]) -> str:
        return " " if "_inline" in parent_tags else "\n"

    def convert_td(self, el: Tag, text: str, parent_tags: set[str]) -> str:
        return text

    convert_th = convert_td

    def convert_x_text(self, el: Tag, text: str, parent_tags: set[str]) -> str:
        return f"\n\n{el['data']}\n\n"


def to_markdown(soup: BeautifulSoup | Tag, *, keep_links: bool) -> str:
    """The text of `soup`, which is changed on the way. Raises RecursionError when too deep."""
    converter = _Converter(keep_links=keep_links)
    for table in reversed(soup.find_all("table")):  # inner tables before those around them
        _replace_table(soup, table, converter)
    text = converter.convert_soup(soup)
    text = _UNSEEN.sub("", _SPACES.sub(" ", text))
    text = "\n".join(line.rstrip() for line in text.split("\n"))
    text = re.sub(r"\n (?=\S)", "\n", text)  # left of a line break; lists are set in by two
    return re.sub(r"\n{3,}", "\n\n", text).strip("\n")


def _replace_table(soup: BeautifulSoup | Tag, table: Tag, converter: _Converter) -> None:
    if _is_layout(table):
        _unwrap(table)
        return
    caption = table.find("caption")
    titles = [cell_text(converter.convert_soup(caption))] if isinstance(caption, Tag) else []
    grid, n_header = _grid(table, converter)
    while len(grid) > 1 and len(grid[0]) == 1 < max(map(len, grid)):
        titles += grid.pop(0)  # one cell over the whole width: a title, no header
        n_header = max(1, n_header - 1)
    title = "\n\n".join(filter(None, titles))
    if not grid:
        table.decompose()
        return
    holder = Tag(name=_HOLDER, can_be_empty_element=False)
    if table.find_parent(["td", "th"]) is not None:
        # Inside a cell that stays a cell, rows must do without lines of their own.
        inner = "; ".join(", ".join(filter(None, row)) for row in grid)
        holder["data"] = f"{title}: {inner}" if title else inner
    else:
        body = markdown_table(_joined(grid[:n_header]), grid[n_header:])
        holder["data"] = f"{title}\n\n{body}" if title else body
    table.replace_with(holder)


def _is_layout(table: Tag) -> bool:
    """A table that only places things: one cell, headings inside, or whole pages in a cell."""
    cells = [cell for row in _rows(table) for cell in _cells(row)]
    if len(cells) < 2 or table.find(["h1", "h2", "h3", "h4", "h5", "h6", "pre"]) is not None:
        return True
    return any(len(cell.get_text()) > _LAYOUT_CHARACTERS for cell in cells)


def _unwrap(table: Tag) -> None:
    for part in [*table.find_all(["thead", "tbody", "tfoot", "tr"]), *_own_cells(table)]:
        if part.find_parent("table") is table:
            part.name = "div"
    table.name = "div"


def _own_cells(table: Tag) -> list[Tag]:
    return [cell for cell in table.find_all(["td", "th"]) if cell.find_parent("table") is table]


def _rows(table: Tag) -> Iterator[Tag]:
    for row in table.find_all("tr"):
        if row.find_parent("table") is table:
            yield row


def _cells(row: Tag) -> list[Tag]:
    return row.find_all(["td", "th"], recursive=False)


def _grid(table: Tag, converter: _Converter) -> tuple[list[list[str]], int]:
    """Texts by row and column, and how many rows are the header.

    A cell that spans rows or columns is repeated in each, so that a row can stand alone; one
    that spans the whole row stands once.
    """
    grid: list[list[str]] = []
    hanging: dict[int, tuple[int, str]] = {}  # column -> rows still to fill, text
    n_header = 0
    for tag in _rows(table):
        cells = _cells(tag)
        row: list[str] = []
        for cell in cells:
            _fill(row, hanging)
            text = " ".join(str(converter.convert_soup(cell)).split())
            n_columns = 1 if len(cells) == 1 else _span(cell, "colspan")
            n_rows = _span(cell, "rowspan")
            for _ in range(n_columns):
                if n_rows > 1:
                    hanging[len(row)] = (n_rows - 1, text)
                row.append(text)
        _fill(row, hanging)
        if any(row):
            grid.append(row)
            n_header += n_header == len(grid) - 1 and _is_header(tag)
    return grid, max(1, n_header if n_header < len(grid) else 1)


def _fill(row: list[str], hanging: dict[int, tuple[int, str]]) -> None:
    while len(row) in hanging:
        n_left, text = hanging.pop(len(row))
        if n_left > 1:
            hanging[len(row)] = (n_left - 1, text)
        row.append(text)


def _span(cell: Tag, name: str) -> int:
    value = str(cell.get(name) or "1").strip()
    return min(_MAX_SPAN, max(1, int(value))) if value.isascii() and value.isdigit() else 1


def _is_header(row: Tag) -> bool:
    if row.find_parent("thead") is not None:
        return True
    return all(cell.name == "th" for cell in _cells(row))


def _joined(rows: list[list[str]]) -> list[str]:
    """Several header rows as one: what stands above each other, without repeats."""
    width = max(len(row) for row in rows)
    columns = [[row[at] for row in rows if at < len(row) and row[at]] for at in range(width)]
    return [" ".join(dict.fromkeys(column)) for column in columns]


def drop(soup: Any, names: list[str]) -> None:
    """Takes elements out with all they contain."""
    for tag in soup.find_all(names):
        tag.decompose()
