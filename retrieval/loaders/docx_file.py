"""Reads Word documents: body, tables, boxes, notes, headers and comments. Runs nothing.

mammoth does the reading. Before it, `docx_body` and `docx_numbers` turn what it would skip into
what it knows; after it, the words of the file are compared with those that came out.
"""

from __future__ import annotations

import io
import re
import zipfile
from pathlib import Path
from xml.etree import ElementTree

import mammoth
from bs4 import BeautifulSoup

from retrieval.loaders.archive import open_archive, read_part
from retrieval.loaders.charts import chart_text
from retrieval.loaders.docx_body import append_section, copied, simplify, spell_out, without_links
from retrieval.loaders.docx_numbers import write_numbers
from retrieval.loaders.docx_xml import Element, paragraph, parse, q, texts, val
from retrieval.loaders.markup import to_markdown
from retrieval.loaders.parsed import Parsed, whole
from retrieval.types import LoadError

_STYLES = "p[style-name='Title'] => h1:fresh\np[style-name='제목'] => h1:fresh\n" + "\n".join(
    f"p[style-name='{name} {level}'] => h{min(level, 6)}:fresh"
    for name in ("제목", "Heading")
    for level in range(1, 10)
)
_CHART = re.compile(r"/charts/chart\d*\.xml$")
_WORD = re.compile(r"\w+")
_UNREAD = (
    (re.compile(r"/embeddings/"), "embedded files"),
    (re.compile(r"/afchunk|/altchunk", re.IGNORECASE), "inserted documents"),
)


def read(path: Path, max_pages: int) -> Parsed:
    """The document as Markdown, its headers, footers, comments and diagrams behind the body.

    Raises LoadError for what is no Word document, is locked, damaged or too large.
    """
    with open_archive(path, kind="a Word document") as archive:
        folder, main = _main_part(archive)
        parts = {
            name: data
            for name in archive.namelist()
            if name.endswith((".xml", ".rels")) and (data := read_part(archive, name)) is not None
        }
        warnings = _unread(archive.namelist(), parts)
    root = parse(parts[main])
    body = root.find(q("w:body"))
    if body is None:
        raise LoadError("This file is damaged: the document in it has no body.")
    spell_out(body)
    before = list(texts(body))
    before += _append_outside(body, parts, folder)
    write_numbers(
        body, _optional(parts, f"{folder}/numbering.xml"), _optional(parts, f"{folder}/styles.xml")
    )
    simplify(body)
    parts[main] = ElementTree.tostring(root)
    charts = (chart_text(data) for name, data in sorted(parts.items()) if _CHART.search(name))
    text = "\n\n".join(filter(None, [_convert(parts), *charts]))
    lost = _lost(before, text)
    if lost:
        text = "\n\n".join([text, "Other text in the document", *lost])
    return whole(text, warnings)


def _main_part(archive: zipfile.ZipFile) -> tuple[str, str]:
    """Folder and name of the document itself, usually word/document.xml."""
    relations = read_part(archive, "_rels/.rels")
    target = "word/document.xml"
    for relation in parse(relations) if relations else ():
        if relation.get("Type", "").endswith("/officeDocument"):
            target = relation.get("Target", target).lstrip("/")
    if target not in archive.namelist():
        raise LoadError("This file is not a Word document, whatever its name says.")
    return target.rpartition("/")[0], target


def _optional(parts: dict[str, bytes], name: str) -> Element | None:
    return parse(parts[name]) if name in parts else None


def _append_outside(body: Element, parts: dict[str, bytes], folder: str) -> list[str]:
    """Appends what people see around the body; returns its paragraphs, for the comparison."""
    found: list[str] = []
    for kind, title in (("header", "Page header"), ("footer", "Page footer")):
        seen: set[tuple[str, ...]] = set()
        for name in sorted(parts):
            if not re.fullmatch(rf"{folder}/{kind}\d*\.xml", name):
                continue
            part = parse(parts[name])
            spell_out(part)
            words = tuple(texts(part))
            if words and words not in seen:  # first, even and other pages often agree
                seen.add(words)
                found += words
                append_section(body, title, [without_links(copied(child)) for child in part])
    comments = _optional(parts, f"{folder}/comments.xml")
    for comment in comments if comments is not None else ():
        spell_out(comment)
        words = tuple(texts(comment))
        if words:
            found += words
            content = [without_links(copied(child)) for child in comment]
            append_section(body, f"Comment by {val(comment, 'w:author') or 'unknown'}", content)
    found += _append_diagrams(body, parts, folder)
    return found


def _append_diagrams(body: Element, parts: dict[str, bytes], folder: str) -> list[str]:
    found: list[str] = []
    for name in sorted(parts):
        if re.fullmatch(rf"{folder}/diagrams/data\d*\.xml", name):
            lines = [
                "".join(text.text or "" for text in line.iter(q("a:t")))
                for line in parse(parts[name]).iter(q("a:p"))
            ]
            lines = [line for line in lines if line.strip()]
            if lines:
                found += lines
                append_section(body, "Diagram", [paragraph(line) for line in lines])
    return found


def _convert(parts: dict[str, bytes]) -> str:
    """The document through mammoth; pictures are not even unpacked."""
    package = io.BytesIO()
    with zipfile.ZipFile(package, "w", zipfile.ZIP_STORED) as archive:
        for name, data in parts.items():
            archive.writestr(name, data)
    package.seek(0)
    result = mammoth.convert_to_html(
        package, style_map=_STYLES, convert_image=_picture, external_file_access=False
    )
    return to_markdown(BeautifulSoup(result.value, "html.parser"), keep_links=True)


def _picture(image: object) -> list[object]:
    """Pictures become their descriptions."""
    from mammoth import html

    text = getattr(image, "alt_text", None)
    return [html.text(text)] if text else []


def _lost(paragraphs: list[str], text: str) -> list[str]:
    """Paragraphs with a word that did not come out anywhere."""
    out = set(_WORD.findall(text))
    together = re.sub(r"\s+", "", text)
    lost = []
    for words in dict.fromkeys(paragraphs):
        missing = [word for word in _WORD.findall(words) if word not in out]
        if any(word not in together for word in missing):
            lost.append(words)
    return lost


def _unread(names: list[str], parts: dict[str, bytes]) -> tuple[str, ...]:
    """What is in the file and not in the text. The workbook behind a chart is read as its chart."""
    behind = b" ".join(data for name, data in parts.items() if "/charts/_rels/" in name)
    left = [name for name in names if name.rpartition("/")[2].encode() not in behind]
    counts = {what: sum(bool(kind.search(name)) for name in left) for kind, what in _UNREAD}
    listed = ", ".join(f"{count} {what}" for what, count in counts.items() if count)
    return (f"Not read in this document: {listed}.",) if listed else ()
