"""Text boxes, formulas, fields and headers of Word as plain runs. Knows no file.

mammoth skips elements that it does not know, with all the text in them; after this it meets
only those that it knows.
"""

from __future__ import annotations

from xml.etree import ElementTree

from retrieval.loaders.docx_xml import Element, paragraph, parents, q, run, val

# Containers whose content is ordinary text; `w:smartTag` is one that mammoth looks into.
_CONTAINERS = (
    "w:fldSimple", "w:bdo", "w:dir", "w:ruby", "w:rubyBase", "w:moveTo", "w:subDoc",
)  # fmt: skip
_MAX_SKIPPED = 100  # columns


def simplify(body: Element) -> None:
    """Changes `body`; the order of what people read stays."""
    for name in _CONTAINERS:
        for element in body.iter(q(name)):
            element.tag = q("w:smartTag")
    _open_text_boxes(body)
    _write_formulas(body)


def spell_out(part: Element) -> None:
    """Changes `part` so that its text stands in plain runs and its cells in their columns: hyphens
    that hold a word together, readings above words (in brackets behind them), skipped columns."""
    for hyphen in part.iter(q("w:noBreakHyphen")):
        hyphen.tag, hyphen.text = q("w:t"), "-"
    for ruby in part.iter(q("w:ruby")):
        for reading in ruby.findall(q("w:rt")):
            ruby.remove(reading)
            text = "".join(piece.text or "" for piece in reading.iter(q("w:t")))
            if text.strip():
                ruby.append(run(f"({text})"))
    for row in list(part.iter(q("w:tr"))):
        skipped = val(row.find(f"{q('w:trPr')}/{q('w:gridBefore')}"))
        for _ in range(min(int(skipped), _MAX_SKIPPED) if skipped.isdecimal() else 0):
            first = row.find(q("w:tc"))
            cell = Element(q("w:tc"))
            cell.append(Element(q("w:p")))
            row.insert(list(row).index(first) if first is not None else len(row), cell)


def _open_text_boxes(body: Element) -> None:
    """Text boxes come in up to two versions of one content: one is kept, as a plain container."""
    above = parents(body)
    for choice in list(body.iter(q("mc:AlternateContent"))):
        boxes = _first_version(choice)
        parent = above[choice]
        at = list(parent).index(choice)
        parent.remove(choice)
        for box in reversed(boxes):
            above[box] = parent
            parent.insert(at, box)
    for drawing in list(body.iter(q("w:drawing"))):
        boxes = list(drawing.iter(q("w:txbxContent")))
        if boxes:
            drawing.clear()
            drawing.tag = q("w:object")
            drawing.extend(boxes)


def _first_version(choice: Element) -> list[Element]:
    """The version with text, else the first with anything."""
    versions = list(choice)
    versions.sort(key=lambda version: not any(text.text for text in version.iter(q("w:t"))))
    return list(versions[0]) if versions else []


def _write_formulas(body: Element) -> None:
    above = parents(body)
    for formula in list(body.iter(q("m:oMath"))):
        parent = above[formula]
        at = list(parent).index(formula)
        parent.remove(formula)
        followed = at < len(parent) and parent[at].tag == q("m:oMath")
        parent.insert(at, run(_linear(formula) + (" " if followed else "")))
    for block in list(body.iter(q("m:oMathPara"))):
        parent = above[block]
        block.tag = q("w:p") if parent.tag in {q("w:body"), q("w:tc")} else q("w:smartTag")


def _linear(element: Element) -> str:
    """A formula in one line: a/b, x^2, x_i, √(x)."""
    name = element.tag.rsplit("}", 1)[-1]
    if name == "t":
        return element.text or ""
    inner = {child.tag.rsplit("}", 1)[-1]: _linear(child) for child in element}
    if name == "f":
        return f"{_grouped(inner.get('num', ''))}/{_grouped(inner.get('den', ''))}"
    if name in {"sSup", "sSub", "sSubSup", "nary"}:
        raised = f"^{_grouped(inner['sup'])}" if inner.get("sup") else ""
        lowered = f"_{_grouped(inner['sub'])}" if inner.get("sub") else ""
        base = _nary_sign(element) if name == "nary" else _grouped(inner.get("e", ""))
        return base + lowered + raised + (f" {inner.get('e', '')}" if name == "nary" else "")
    if name == "rad":
        return f"√({inner.get('e', '')})"
    if name == "d":
        return "(" + ", ".join(_linear(child) for child in element.findall(q("m:e"))) + ")"
    return "".join(_linear(child) for child in element)


def _nary_sign(element: Element) -> str:
    sign = element.find(f"{q('m:naryPr')}/{q('m:chr')}")
    return sign.get(q("m:val"), "∫") if sign is not None else "∫"


def _grouped(text: str) -> str:
    """In brackets, unless it is one piece anyway."""
    is_one = text.isalnum() or (text[:1] == "(" and text.find(")") == len(text) - 1)
    return text if len(text) <= 1 or is_one else f"({text})"


def append_section(body: Element, title: str, content: list[Element]) -> None:
    """Puts what stands outside the body (headers, comments) behind it, under its name."""
    end = body.find(q("w:sectPr"))
    at = list(body).index(end) if end is not None else len(body)
    for element in reversed([paragraph(title), *content]):
        body.insert(at, element)


def without_links(element: Element) -> Element:
    """Other parts have link tables of their own: their ids would point anywhere here."""
    for link in element.iter(q("w:hyperlink")):
        link.tag = q("w:smartTag")
    for name in ("w:pict", "w:object", "w:drawing"):
        for picture in list(element.iter(q(name))):
            boxes = [copied(box) for box in picture.iter(q("w:txbxContent"))]
            picture.clear()
            picture.tag = q("w:object")
            picture.extend(boxes)
    return element


def copied(element: Element) -> Element:
    return ElementTree.fromstring(ElementTree.tostring(element))
