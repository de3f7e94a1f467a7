"""Draws one page of a PDF as a PNG, with a quoted text marked. Knows no caller.

Only ever runs in the parser's own process, as `pdf_file` does.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pypdfium2.raw as pdfium_c
from PIL import Image, ImageChops, ImageDraw

from retrieval.loaders.pdf_file import opened

MAX_SIDE = 1600  # pixels: sharp on a screen, and a hundred kilobytes
DOTS_PER_INCH = 144
MARK = (255, 238, 130)
MIN_QUOTE_CHARACTERS = 2

Box = tuple[int, int, int, int]


def draw(path: Path, number: int, quote: str) -> bytes:
    """Page `number` (from 1) as PNG. What of `quote` stands on it is marked, all of it or as much
    as the page holds of a text that goes on from page to page.

    Raises LoadError for a file that cannot be opened, IndexError for a page that is not there.
    """
    document = opened(path)
    try:
        if not 1 <= number <= len(document):
            raise IndexError(number)
        page = document.get_page(number - 1)
        try:
            side = max(page.get_width(), page.get_height(), 1.0)
            bitmap = page.render(scale=min(DOTS_PER_INCH / 72, MAX_SIDE / side))
            try:
                position = bitmap.get_posconv(page)
                boxes = [_on_bitmap(position, box) for box in _boxes(page, quote)]
                picture = bitmap.to_pil().convert("RGB")
            finally:
                bitmap.close()
        finally:
            page.close()
    finally:
        document.close()
    return _png(_marked(picture, boxes))


def _marked(picture: Image.Image, boxes: list[Box]) -> Image.Image:
    """As with a marker pen: what is dark stays dark."""
    if not boxes:
        return picture
    layer = Image.new("RGB", picture.size, (255, 255, 255))
    pen = ImageDraw.Draw(layer)
    for box in boxes:
        pen.rectangle(box, fill=MARK)
    return ImageChops.multiply(picture, layer)


def _png(picture: Image.Image) -> bytes:
    made = io.BytesIO()
    picture.save(made, "PNG", optimize=True)
    return made.getvalue()


def _boxes(page: Any, quote: str) -> Iterator[tuple[float, float, float, float]]:
    """Where the quote stands, as (left, bottom, right, top) in points. Spaces and hyphens do not
    count: cleaning has joined lines."""
    text_page = page.get_textpage()
    try:
        characters = [
            (at, chr(pdfium_c.FPDFText_GetUnicode(text_page, at)))
            for at in range(text_page.count_chars())
        ]
        letters = [(at, letter) for at, letter in characters if letter.isalnum()]
        first, count = _place("".join(c for _, c in letters), "".join(filter(str.isalnum, quote)))
        if count < MIN_QUOTE_CHARACTERS:
            return
        begin, end = letters[first][0], letters[first + count - 1][0] + 1
        for at in range(text_page.count_rects(begin, end - begin)):
            yield text_page.get_rect(at)
    finally:
        text_page.close()


def _place(text: str, wanted: str) -> tuple[int, int]:
    """Where `wanted` begins in `text` and how long it is: whole, or as much of its beginning as
    the page ends with, or of its end as the page begins with. (0, 0) when there is nothing."""
    at = text.find(wanted)
    if at >= 0:
        return at, len(wanted)
    for length in range(min(len(text), len(wanted)), MIN_QUOTE_CHARACTERS, -1):
        if text.endswith(wanted[:length]):
            return len(text) - length, length
        if text.startswith(wanted[-length:]):
            return 0, length
    return 0, 0


def _on_bitmap(position: Any, box: tuple[float, float, float, float]) -> Box:
    (a, b), (c, d) = position.to_bitmap(box[0], box[1]), position.to_bitmap(box[2], box[3])
    return min(a, c) - 1, min(b, d) - 1, max(a, c) + 1, max(b, d) + 1
