"""Reads OpenDocument texts and presentations (ODT, ODP) as Markdown. Knows no styles.

Written for the XML itself (OASIS OpenDocument 1.3, part 3): the one library for it is unkept.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from xml.etree import ElementTree

from retrieval.loaders.archive import open_archive, read_part
from retrieval.loaders.parsed import Parsed
from retrieval.loaders.slides import NOTES
from retrieval.loaders.tables import markdown_table
from retrieval.types import LoadError, Page

Element = ElementTree.Element
_MAX_REPEAT = 100
_SKIPPED = {"tracked-changes", "forms", "sequence-decls", "index-title-template", "annotation-end"}
_HEADERS = ("header", "footer", "header-first", "footer-first", "header-left", "footer-left")


def read(path: Path, max_pages: int) -> Parsed:
    """One page for a text, one a slide for a presentation. Raises LoadError."""
    with open_archive(path, kind="an OpenDocument file") as archive:
        root = _xml(archive, "content.xml")
        styles = _xml(archive, "styles.xml") if "styles.xml" in archive.namelist() else None
        _put_in_objects(archive, root)
    body = next((e for e in root.iter() if _name(e) == "body"), None)
    if body is None or not len(body):
        raise LoadError("This file is damaged: the document in it has no body.")
    slides = [e for e in body.iter() if _name(e) == "page"]
    if slides and _name(body[0]) == "presentation":
        if len(slides) > max_pages:
            raise LoadError(f"This presentation has {len(slides)} slides, {max_pages} are allowed.")
        return Parsed(tuple(Page(at, _slide(one)) for at, one in enumerate(slides, start=1)))
    blocks = [*_blocks(body[0]), *_furniture(styles)]
    return Parsed((Page(None, "\n\n".join(blocks)),))


def _xml(archive: zipfile.ZipFile, name: str) -> Element:
    manifest = read_part(archive, "META-INF/manifest.xml") or b""
    if b"encryption-data" in manifest:
        raise LoadError("This file is password-protected; save a copy without a password.")
    data = read_part(archive, name)
    if data is None:
        raise LoadError("This file is not an OpenDocument file, whatever its name says.")
    if b"<!ENTITY" in data:
        raise LoadError("This file declares XML entities, which Office files never do; not opened.")
    try:
        return ElementTree.fromstring(data)
    except ElementTree.ParseError as error:
        raise LoadError("This file is damaged: a part of it is not valid XML.") from error


def _put_in_objects(archive: zipfile.ZipFile, root: Element) -> None:
    """Charts are files of their own within the file; their tables go where they are shown."""
    names = set(archive.namelist())
    for element in list(root.iter()):
        part = f"{_get(element, 'href').removeprefix('./')}/content.xml"
        if _name(element) == "object" and part in names:
            inner = _xml(archive, part)
            charts = (e for e in inner.iter() if _name(e) == "chart" and _get(e, "class"))
            chart = next(charts, None)
            if chart is not None:
                element.extend(e for e in inner.iter() if _name(e) == "table")
                element.set("kind", _get(chart, "class").rpartition(":")[2])


def _name(element: Element) -> str:
    return element.tag.rpartition("}")[2] if isinstance(element.tag, str) else ""


def _get(element: Element, name: str) -> str:
    return next((v for key, v in element.attrib.items() if key.rpartition("}")[2] == name), "")


def _slide(page: Element) -> str:
    blocks: list[str] = []
    for part in page:
        if _name(part) == "notes":
            notes = " ".join(" ".join(_blocks(part)).split())
            blocks += [f"{NOTES} {notes}"] if notes else []
        elif _get(part, "class") == "title":
            title = " ".join(" ".join(_blocks(part)).split())
            blocks[:0] = [f"# {title}"] if title else []
        else:
            blocks += _blocks(part)
    return "\n\n".join(blocks)


def _blocks(element: Element) -> Iterator[str]:
    """Headings, paragraphs, lists and tables below an element, in their order."""
    name = _name(element)
    if name in _SKIPPED:
        return
    reader = _READERS.get(name)
    if reader is not None:
        text = reader(element)
        if text.strip():
            yield text
        for frame in element.iter() if name in ("p", "h") else ():
            if _name(frame) in ("text-box", "object"):
                yield from _boxed(frame)
        return
    if name == "object":
        yield from _boxed(element)
        return
    yield from _children(element)


def _boxed(element: Element) -> Iterator[str]:
    if _name(element) == "object" and len(element):
        yield f"{element.get('kind', '').capitalize()} chart".strip()
    yield from _children(element)


def _children(element: Element) -> Iterator[str]:
    for child in element:
        yield from _blocks(child)


def _heading(element: Element) -> str:
    level = _get(element, "outline-level")
    marks = "#" * min(6, int(level) if level.isdigit() and level != "0" else 1)
    text = _inline(element)
    return f"{marks} {text}" if text else ""


def _list(element: Element, depth: int = 0) -> str:
    lines: list[str] = []
    for item in element:
        if _name(item) not in ("list-item", "list-header"):
            continue
        first = True
        for part in item:
            if _name(part) == "list":
                lines.append(_list(part, depth + 1))
            elif text := " ".join(" ".join(_blocks(part)).split()):
                lines.append(f"{'  ' * depth}{'- ' if first else '  '}{text}")
                first = False
    return "\n".join(filter(None, lines))


def _table(element: Element) -> str:
    """Texts by row and column; a cell that spans others is repeated in them."""
    rows: list[list[str]] = []
    spanned: dict[tuple[int, int], str] = {}
    for at, row in enumerate(_own(element, "table-row")):
        cells: list[str] = []
        for cell in row:
            if _name(cell) not in ("table-cell", "covered-table-cell"):
                continue
            text = " ".join(" ".join(_children(cell)).split()) or _get(cell, "value")
            text = text or spanned.get((at, len(cells)), "")
            for below in range(at, at + _count(cell, "number-rows-spanned")):
                for beside in range(_count(cell, "number-columns-spanned")):
                    spanned[below, len(cells) + beside] = text
            for _ in range(_count(cell, "number-columns-repeated")):
                cells.append(text or spanned.get((at, len(cells)), ""))
        rows.append(cells)
    filled = [row for row in rows if any(row)]
    return markdown_table(filled[0], filled[1:]) if filled else ""


def _count(cell: Element, name: str) -> int:
    value = _get(cell, name)
    return max(1, min(int(value), _MAX_REPEAT)) if value.isascii() and value.isdigit() else 1


def _own(table: Element, name: str) -> Iterator[Element]:
    """Rows of this table, also in groups, not those of tables in its cells."""
    for child in table:
        if _name(child) == name:
            yield child
        elif _name(child) in ("table-header-rows", "table-rows", "table-row-group"):
            yield from _own(child, name)


def _paragraph(element: Element) -> str:
    text = _inline(element)
    is_title = _get(element, "style-name") == "Title" and bool(text)
    return f"# {' '.join(text.split())}" if is_title else text


_READERS: dict[str, Callable[[Element], str]] = {
    "h": _heading,
    "p": _paragraph,
    "list": _list,
    "table": _table,
}


def _inline(element: Element) -> str:
    """The text of a paragraph with its notes and comments, in one line or as it is broken."""
    lines = "".join(_pieces(element)).split("\n")
    return "\n".join(re.sub(r"[ \t]+", " ", line).strip() for line in lines).strip()


def _pieces(element: Element) -> Iterator[str]:
    yield element.text or ""
    for child in element:
        yield from _piece(child)
        yield child.tail or ""


def _piece(element: Element) -> Iterator[str]:
    name = _name(element)
    if name in ("s", "tab"):
        yield " "
    elif name == "line-break":
        yield "\n"
    elif name == "note":
        body = next((e for e in element if _name(e) == "note-body"), None)
        if body is not None:
            yield f" [{' '.join(' '.join(_children(body)).split())}]"
    elif name == "annotation":
        texts = [_inline(e) for e in element if _name(e) in ("p", "list")]
        yield f" [Comment: {' '.join(filter(None, texts))}]"
    elif name in ("text-box", "object"):
        return  # a block of its own
    elif name in ("title", "desc") and "svg" in str(element.tag):
        yield f" {element.text or ''} "
    elif name not in _SKIPPED:
        yield from _pieces(element)


def _furniture(styles: Element | None) -> Iterator[str]:
    """Headers and footers of the pages, once each."""
    seen: set[str] = set()
    for element in styles.iter() if styles is not None else ():
        if _name(element) in _HEADERS:
            for text in _children(element):
                if text not in seen and re.search(r"[^\W\d]", text):
                    seen.add(text)
                    yield text
