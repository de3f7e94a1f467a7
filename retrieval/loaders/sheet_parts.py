"""What stands beside the cells of an Excel workbook: charts and threaded comments."""

from __future__ import annotations

import posixpath
import zipfile
from collections import defaultdict
from collections.abc import Iterator
from xml.etree import ElementTree

from retrieval.loaders.archive import read_part
from retrieval.loaders.charts import chart_text

THREADED = "Comment thread"
Element = ElementTree.Element


def beside_cells(archive: zipfile.ZipFile) -> dict[str, list[str]]:
    """Texts by the name of the sheet that they belong to."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    people = _people(archive)
    for name, part in _sheets(archive):
        for kind, target in _relations(archive, part):
            if kind == "threadedComment":
                found[name] += _comments(archive, target, people)
            elif kind == "drawing":
                for inner, chart in _relations(archive, target):
                    if inner == "chart" and (text := chart_text(read_part(archive, chart) or b"")):
                        found[name].append(text)
    return dict(found)


def _sheets(archive: zipfile.ZipFile) -> Iterator[tuple[str, str]]:
    """Each sheet's name and part."""
    parts = {
        element.get("Id", ""): _resolved("xl/workbook.xml", element.get("Target", ""))
        for element in _xml(archive, "xl/_rels/workbook.xml.rels")
    }
    for element in _xml(archive, "xl/workbook.xml").iter():
        if element.tag.endswith("}sheet"):
            number = next((v for k, v in element.attrib.items() if k.endswith("}id")), "")
            if number in parts:
                yield element.get("name", ""), parts[number]


def _relations(archive: zipfile.ZipFile, part: str) -> Iterator[tuple[str, str]]:
    folder, name = posixpath.split(part)
    for element in _xml(archive, f"{folder}/_rels/{name}.rels"):
        if element.get("TargetMode") != "External":
            kind = element.get("Type", "").rpartition("/")[2]
            yield kind, _resolved(part, element.get("Target", ""))


def _resolved(part: str, target: str) -> str:
    if target.startswith("/"):
        return target.lstrip("/")
    return posixpath.normpath(posixpath.join(posixpath.dirname(part), target))


def _people(archive: zipfile.ZipFile) -> dict[str, str]:
    return {
        element.get("id", ""): element.get("displayName", "")
        for name in archive.namelist()
        if name.startswith("xl/persons/")
        for element in _xml(archive, name)
    }


def _comments(archive: zipfile.ZipFile, part: str, people: dict[str, str]) -> Iterator[str]:
    for element in _xml(archive, part):
        text = " ".join("".join(element.itertext()).split())
        author = people.get(element.get("personId", ""), "")
        when = element.get("dT", "")[:16].replace("T", " ")
        who = ", ".join(filter(None, [author, when]))
        yield f"{THREADED} on {element.get('ref', '?')} ({who}): {text}"


def _xml(archive: zipfile.ZipFile, name: str) -> Element:
    """A part; an empty element for one that is missing or damaged, since it is only beside."""
    data = read_part(archive, name)
    if data is None or b"<!DOCTYPE" in data[:4096]:
        return Element("none")
    try:
        return ElementTree.fromstring(data)
    except ElementTree.ParseError:
        return Element("none")
