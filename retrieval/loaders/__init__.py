"""Which suffix is read by which loader. Knows no format; each loader is one file of this package.

A new format is one module with a function `read(path, max_pages) -> Parsed` and one line in
`LOADERS`. Modules are imported by name, late: the program itself never loads a PDF library.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from retrieval.loaders.parsed import Parsed


@dataclass(frozen=True, slots=True)
class Loader:
    """`media` is the short format name. `plain`: small files need no process of their own."""

    media: str
    module: str
    plain: bool = False

    def read(self, path: Path, *, max_pages: int) -> Parsed:
        """Parses in this process. Raises LoadError, and whatever a damaged file provokes."""
        module = importlib.import_module(f"retrieval.loaders.{self.module}")
        function: Callable[[Path, int], Parsed] = module.read
        return function(path, max_pages)


_TEXT = Loader("txt", "plain_text", plain=True)
_MARKDOWN = Loader("md", "plain_text", plain=True)
_HTML = Loader("html", "html_page")
_DOCX = Loader("docx", "docx_file")
_TABLE = Loader("csv", "delimited", plain=True)

LOADERS: dict[str, Loader] = {
    ".txt": _TEXT,
    ".text": _TEXT,
    ".log": _TEXT,
    ".md": _MARKDOWN,
    ".markdown": _MARKDOWN,
    ".pdf": Loader("pdf", "pdf_file"),
    ".docx": _DOCX,
    ".docm": _DOCX,
    ".html": _HTML,
    ".htm": _HTML,
    ".xhtml": _HTML,
    ".csv": _TABLE,
    ".tsv": _TABLE,
}
