"""Reads pictures by text recognition. Knows no document around them."""

from __future__ import annotations

from pathlib import Path

from PIL import Image, ImageOps, ImageSequence, UnidentifiedImageError

from retrieval.loaders.parsed import Parsed
from retrieval.loaders.recognition import INSTALL, languages, recognise
from retrieval.types import LoadError, Page

NOTE = "The text of {} was recognised (OCR) and may hold mistakes."


def read(path: Path, max_pages: int) -> Parsed:
    """One Page a frame (TIFF files hold several). Raises LoadError."""
    if not languages():
        raise LoadError(f"Reading pictures needs text recognition: {INSTALL}.")
    try:
        with Image.open(path) as picture:
            frames = list(_frames(picture, max_pages))
    except (UnidentifiedImageError, Image.DecompressionBombError, OSError, ValueError) as error:
        raise LoadError("This picture is damaged, too large, or no picture.") from error
    pages = [Page(number, text) for number, text in enumerate(frames, start=1)]
    if not any(page.text for page in pages):
        return Parsed(tuple(pages), ("No text was recognised in this picture.",))
    return Parsed(tuple(pages), (NOTE.format("this picture"),))


def _frames(picture: Image.Image, max_frames: int) -> list[str]:
    texts = []
    for at, frame in enumerate(ImageSequence.Iterator(picture)):
        if at >= max_frames:
            raise LoadError(f"This picture has more than {max_frames} pages; split it.")
        text = recognise(ImageOps.exif_transpose(frame).convert("RGB"))
        if text is None:
            raise LoadError("Recognising the text of this picture took too long; split it.")
        texts.append(text)
    return texts
