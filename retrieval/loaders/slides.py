"""Reads PowerPoint presentations: titles, texts, tables, charts, diagrams and notes. Runs nothing.

One Page a slide, its title as a heading. What no reader of the library sees (diagrams, comments)
is taken from the parts that hold it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from pptx import Presentation
from pptx.enum.shapes import PP_PLACEHOLDER
from pptx.exc import PackageNotFoundError

from retrieval.loaders.archive import open_archive
from retrieval.loaders.charts import chart_text
from retrieval.loaders.parsed import Parsed
from retrieval.loaders.tables import markdown_table
from retrieval.types import LoadError, Page

NOTES = "Speaker notes:"
_DRAWING = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
_FURNITURE = {PP_PLACEHOLDER.SLIDE_NUMBER, PP_PLACEHOLDER.DATE, PP_PLACEHOLDER.FOOTER}


def read(path: Path, max_pages: int) -> Parsed:
    """The slides in their order, hidden ones too. Raises LoadError for what is no presentation."""
    with open_archive(path, kind="a PowerPoint presentation"):
        pass  # within the limits of size, and without a password
    try:
        presentation = Presentation(str(path))
    except (PackageNotFoundError, KeyError, ValueError) as error:
        raise LoadError("This file is damaged or not a PowerPoint presentation.") from error
    slides = list(presentation.slides)
    if len(slides) > max_pages:
        raise LoadError(f"This presentation has {len(slides)} slides, {max_pages} are allowed.")
    authors = _authors(presentation)
    pages = tuple(
        Page(number, _slide(slide, authors)) for number, slide in enumerate(slides, start=1)
    )
    without = [page.number for page in pages if not page.text]
    pictures = f"No text on slides {', '.join(map(str, without))}." if without else ""
    return Parsed(pages, (pictures,) if pictures else ())


def _slide(slide: Any, authors: dict[str, str]) -> str:
    title = slide.shapes.title
    heading = " ".join(title.text_frame.text.split()) if title is not None else ""
    blocks = [f"# {heading}"] if heading else []
    for shape in slide.shapes:
        if title is None or shape.shape_id != title.shape_id:
            blocks += _shape(shape)
    blocks += _diagrams(slide)
    if slide.has_notes_slide and slide.notes_slide.notes_text_frame is not None:
        notes = _paragraphs(slide.notes_slide.notes_text_frame)
        blocks += [f"{NOTES} {notes}"] if notes else []
    blocks += _comments(slide, authors)
    return "\n\n".join(blocks)


def _shape(shape: Any) -> Iterator[str]:
    """The texts of a shape and of those in it, from top to bottom as they are stored."""
    if shape.is_placeholder and shape.placeholder_format.type in _FURNITURE:
        return
    if hasattr(shape, "shapes"):
        for inner in shape.shapes:
            yield from _shape(inner)
    elif getattr(shape, "has_table", False) and shape.has_table:
        rows = _rows(shape.table)
        if any(any(row) for row in rows):
            yield markdown_table(rows[0], rows[1:])
    elif getattr(shape, "has_chart", False) and shape.has_chart:
        yield chart_text(shape.chart.part.blob)
    elif shape.has_text_frame and shape.text_frame.text.strip():
        yield _paragraphs(shape.text_frame)


def _paragraphs(frame: Any) -> str:
    """One line a paragraph; several of them are a list, deeper levels set in."""
    found = [(p, " ".join(p.text.split())) for p in frame.paragraphs]
    found = [(p, text) for p, text in found if text]
    if len(found) < 2:
        return "".join(text for _, text in found)
    lines, counts = [], dict.fromkeys(range(10), 0)
    for p, text in found:
        numbered = p._p.pPr is not None and p._p.pPr.find(f"{_DRAWING}buAutoNum") is not None
        counts = {level: n for level, n in counts.items() if level <= p.level}
        counts[p.level] = counts.get(p.level, 0) + 1 if numbered else 0
        lines.append(f"{'  ' * p.level}{f'{counts[p.level]}.' if numbered else '-'} {text}")
    return "\n".join(lines)


def _rows(table: Any) -> list[list[str]]:
    """Texts by row and column; a cell that spans others is repeated in them."""
    rows = [[cell.text_frame.text for cell in row.cells] for row in table.rows]
    for at, row in enumerate(table.rows):
        for column, cell in enumerate(row.cells):
            if cell.is_merge_origin:
                for below in range(at, min(at + cell.span_height, len(rows))):
                    width = min(column + cell.span_width, len(rows[below])) - column
                    rows[below][column : column + width] = [rows[at][column]] * width
    return rows


def _authors(presentation: Any) -> dict[str, str]:
    """Names of those who commented, by the ids in the comments."""
    found = {}
    for _, root in _parts(presentation.part, ("/commentAuthors", "/authors")):
        for element in root:
            found[element.get("id", "")] = element.get("name", "")
    return found


def _comments(slide: Any, authors: dict[str, str]) -> Iterator[str]:
    for _, root in _parts(slide.part, ("/comments",)):
        for element in root.iter():
            if element.tag.endswith(("}cm", "}reply")):
                author = authors.get(element.get("authorId", ""), "")
                when = element.get("dt") or element.get("created") or ""
                head = ", ".join(filter(None, [author, when[:16].replace("T", " ")]))
                text = " ".join(_own_text(element).split())
                yield f"Comment ({head}): {text}" if head else f"Comment: {text}"


def _own_text(comment: ElementTree.Element) -> str:
    """The text of a comment without that of the replies to it."""
    inner = [e for e in comment if not e.tag.endswith("}replyLst")]
    return " ".join(
        e.text or "" for part in inner for e in part.iter() if e.tag.endswith(("}t", "}text"))
    )


def _diagrams(slide: Any) -> list[str]:
    """The texts in the boxes of SmartArt, one block a diagram."""
    found = []
    for _, root in _parts(slide.part, ("/diagramData",)):
        texts = ["".join(p.itertext()).strip() for p in root.iter(f"{_DRAWING}p")]
        found.append("\n".join(text for text in texts if text))
    return [text for text in found if text]


def _parts(part: Any, kinds: tuple[str, ...]) -> Iterator[tuple[str, ElementTree.Element]]:
    """The parts that belong to a part by relations of some kinds."""
    for relation in part.rels.values():
        if not relation.is_external and relation.reltype.endswith(kinds):
            yield relation.reltype, ElementTree.fromstring(relation.target_part.blob)
