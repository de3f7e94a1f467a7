"""Reads EPUB books chapter by chapter, in reading order. Fetches nothing."""

from __future__ import annotations

import posixpath
import zipfile
from pathlib import Path
from urllib.parse import unquote
from xml.etree import ElementTree

from retrieval.loaders.archive import open_archive, read_part
from retrieval.loaders.html_page import html_text
from retrieval.loaders.parsed import Parsed
from retrieval.types import LoadError, Page

_LOCKED = "META-INF/encryption.xml"
_FONTS_ONLY = (b"embedding", b"obfuscation")


def read(path: Path, max_pages: int) -> Parsed:
    """One text for the whole book. Raises LoadError for what is no EPUB, locked or damaged."""
    with open_archive(path, kind="an EPUB book") as archive:
        _refuse_locked(archive)
        title, chapters = _spine(archive)
        texts = []
        missing = []
        for name in chapters:
            data = read_part(archive, name)
            if data is None:
                missing.append(name)
                continue
            texts.append(html_text(data, None))
    heading = [f"# {title}"] if title and not any(title in text[:300] for text in texts) else []
    text = "\n\n".join([*heading, *filter(None, texts)])
    warnings = (f"Chapters missing in the file: {', '.join(missing)}.",) if missing else ()
    return Parsed((Page(None, text),), warnings)


def _refuse_locked(archive: zipfile.ZipFile) -> None:
    locks = read_part(archive, _LOCKED)
    if locks is not None and not any(mark in locks for mark in _FONTS_ONLY):
        raise LoadError("This book is protected by its shop (DRM) and cannot be read here.")


def _spine(archive: zipfile.ZipFile) -> tuple[str, list[str]]:
    """Title, and the names of the chapters in their order."""
    container = _xml(archive, "META-INF/container.xml")
    package = next((e.get("full-path", "") for e in container.iter() if _is(e, "rootfile")), "")
    root = _xml(archive, package)
    folder = posixpath.dirname(package)
    items = {
        e.get("id", ""): posixpath.normpath(posixpath.join(folder, unquote(e.get("href", ""))))
        for e in root.iter()
        if _is(e, "item") and "html" in e.get("media-type", "")
    }
    order = [e.get("idref", "") for e in root.iter() if _is(e, "itemref")]
    title = next((e.text or "" for e in root.iter() if _is(e, "title")), "")
    return " ".join(title.split()), [items[one] for one in order if one in items]


def _xml(archive: zipfile.ZipFile, name: str) -> ElementTree.Element:
    data = read_part(archive, name)
    if data is None:
        raise LoadError("This file is not an EPUB book: its table of parts is missing.")
    if b"<!ENTITY" in data:
        raise LoadError("This book declares XML entities, which no EPUB needs; not opened.")
    try:
        return ElementTree.fromstring(data)
    except ElementTree.ParseError as error:
        raise LoadError("This file is damaged: a part of it is not valid XML.") from error


def _is(element: ElementTree.Element, name: str) -> bool:
    return element.tag.rpartition("}")[2] == name
