"""Reads RTF: the words without their dress. Knows no layout but table rows."""

from __future__ import annotations

import re
from pathlib import Path

from striprtf.striprtf import rtf_to_text

from retrieval.loaders.parsed import Parsed, whole
from retrieval.types import LoadError

_HIDDEN_GROUP = re.compile(r"\{\\\*?\\?(?:themedata|datastore|colorschememapping)[^{}]*\}")


def read(path: Path, max_pages: int) -> Parsed:
    """The text. Raises LoadError for what is no RTF."""
    data = path.read_bytes()
    if not data.lstrip().startswith(b"{\\rt"):
        raise LoadError("This file is not RTF, whatever its name says.")
    text = rtf_text(data)
    n_lost = text.count("\ufffd")
    warning = f"{n_lost} characters could not be read and are shown as \ufffd."
    return whole(text, (warning,) if n_lost else ())


def rtf_text(data: bytes) -> str:
    """RTF is ASCII with escapes; the code page of the escapes stands in it."""
    source = _HIDDEN_GROUP.sub("", data.decode("latin-1"))
    text = str(rtf_to_text(source, errors="replace")).replace("\x00", "")
    return re.sub(r"\n{3,}", "\n\n", text.replace("\r\n", "\n")).strip()
