"""Names and small helpers for WordprocessingML. Knows no file and no wording."""

from __future__ import annotations

import re
from collections.abc import Iterator
from xml.etree import ElementTree

from retrieval.types import LoadError

Element = ElementTree.Element

_SPACES = {
    "w": "http://schemas.openxmlformats.org/wordprocessingml/2006/main",
    "r": "http://schemas.openxmlformats.org/officeDocument/2006/relationships",
    "m": "http://schemas.openxmlformats.org/officeDocument/2006/math",
    "a": "http://schemas.openxmlformats.org/drawingml/2006/main",
    "mc": "http://schemas.openxmlformats.org/markup-compatibility/2006",
    "v": "urn:schemas-microsoft-com:vml",
}
# The strict variant of the format has other names for the same things.
_STRICT = (
    (b"http://purl.oclc.org/ooxml/officeDocument/relationships", _SPACES["r"].encode()),
    (b"http://purl.oclc.org/ooxml/officeDocument/math", _SPACES["m"].encode()),
    (b"http://purl.oclc.org/ooxml/wordprocessingml/main", _SPACES["w"].encode()),
    (b"http://purl.oclc.org/ooxml/drawingml/main", _SPACES["a"].encode()),
)
for _prefix, _address in _SPACES.items():
    ElementTree.register_namespace(_prefix, _address)


def q(name: str) -> str:
    """`w:p` as ElementTree spells it."""
    prefix, local = name.split(":")
    return f"{{{_SPACES[prefix]}}}{local}"


def parse(data: bytes) -> Element:
    """Raises LoadError for XML that is damaged or declares entities, as no Office program does."""
    if b"<!DOCTYPE" in data[:4096]:
        raise LoadError("This file declares XML entities, which Office files never do; not opened.")
    for strict, usual in _STRICT:
        data = data.replace(strict, usual)
    try:
        return ElementTree.fromstring(data)
    except ElementTree.ParseError as error:
        raise LoadError("This file is damaged: a part of it is not valid XML.") from error


def parents(root: Element) -> dict[Element, Element]:
    return {child: parent for parent in root.iter() for child in parent}


def val(element: Element | None, name: str = "w:val") -> str:
    return element.get(q(name), "") if element is not None else ""


def run(text: str) -> Element:
    """A run of plain text."""
    element = Element(q("w:r"))
    child = ElementTree.SubElement(element, q("w:t"))
    child.text = text
    return element


def paragraph(text: str) -> Element:
    element = Element(q("w:p"))
    element.append(run(text))
    return element


def texts(element: Element) -> Iterator[str]:
    """The paragraphs in document order as people see them: without deleted or moved text."""
    for part in _kept(element, q("w:p")):
        words = "".join(_piece(child) for child in _kept(part, None))
        if re.search(r"\w", words):
            yield " ".join(words.split())


def _piece(element: Element) -> str:
    if element.tag == q("w:t"):
        return element.text or ""
    return " " if element.tag in {q("w:tab"), q("w:br"), q("w:cr"), q("w:p"), q("w:sym")} else ""


_GONE = {q("w:del"), q("w:moveFrom"), q("w:instrText"), q("mc:Fallback")}


def _kept(element: Element, tag: str | None) -> Iterator[Element]:
    """Descendants with `tag`, outermost first; inside a match it does not look further."""
    for child in element:
        if child.tag in _GONE:
            continue
        if tag is None or child.tag == tag:
            yield child
        if tag is None or child.tag != tag:
            yield from _kept(child, tag)
