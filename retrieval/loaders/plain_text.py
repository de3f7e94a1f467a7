"""Reads plain text and Markdown: decoding is all. Knows nothing of what the text means."""

from __future__ import annotations

from pathlib import Path

from retrieval.loaders.encoding import decode
from retrieval.loaders.parsed import Parsed, whole


def read(path: Path, max_pages: int) -> Parsed:
    """The file's own characters. Raises LoadError when it is not text."""
    found = decode(path.read_bytes())
    return whole(found.text, (found.warning,) if found.warning else ())
