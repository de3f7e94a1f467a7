"""The numbers that a chart of an Office file draws, as a table. Knows no file and no container.

Charts keep a copy of what they show (ECMA-376, part 1, 21.2), also when the workbook that it
came from is gone.
"""

from __future__ import annotations

from collections.abc import Iterator
from xml.etree import ElementTree

from retrieval.loaders.tables import markdown_table

Element = ElementTree.Element


def chart_text(data: bytes) -> str:
    """Kind, title and table of a chart part; "" for one that holds nothing or is damaged."""
    if b"<!DOCTYPE" in data[:4096]:
        return ""
    try:
        root = ElementTree.fromstring(data)
    except ElementTree.ParseError:
        return ""
    series = [element for element in root.iter() if _name(element) == "ser"]
    if not series:
        return ""
    title = " ".join(_texts(next(_below(root, "title"), None)).split())
    kind = next((_name(e) for e in root.iter() if _name(e).endswith("Chart")), "")
    shown = kind.removesuffix("Chart").removesuffix("3D").capitalize()
    head = f"{shown} chart: {title}" if title else f"{shown} chart"
    return f"{head.strip()}\n\n{_table(series)}".strip()


def _table(series: list[Element]) -> str:
    columns = [
        (_label(one), _points(one, "cat", "xVal"), _points(one, "val", "yVal")) for one in series
    ]
    keys = sorted({at for _, names, values in columns for at in (*names, *values)})
    names = next((names for _, names, _ in columns if names), {})
    rows = [
        [names.get(at, str(at + 1)), *(values.get(at, "") for _, _, values in columns)]
        for at in keys
    ]
    return markdown_table(["Category", *(label for label, _, _ in columns)], rows) if rows else ""


def _label(series: Element) -> str:
    return " ".join(_texts(next(_below(series, "tx"), None)).split()) or "Series"


def _points(series: Element, *kinds: str) -> dict[int, str]:
    """Number of the point -> its value as it is kept."""
    found: dict[int, str] = {}
    for kind in kinds:
        for part in _below(series, kind):
            for point in _below(part, "pt"):
                at = point.get("idx", "")
                value = next((e.text or "" for e in _below(point, "v")), "")
                if at.isdigit():
                    found.setdefault(int(at), _rounded(value))
    return found


def _rounded(value: str) -> str:
    try:
        return f"{float(value):.10g}"
    except ValueError:
        return value


def _texts(element: Element | None) -> str:
    if element is None:
        return ""
    return " ".join(e.text or "" for e in element.iter() if _name(e) in ("t", "v"))


def _below(element: Element, name: str) -> Iterator[Element]:
    return (e for e in element.iter() if _name(e) == name)


def _name(element: Element) -> str:
    return element.tag.rpartition("}")[2] if isinstance(element.tag, str) else ""
