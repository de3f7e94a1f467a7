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
_CODE = Loader("code", "plain_text", plain=True)
_HTML = Loader("html", "html_page")
_DOCX = Loader("docx", "docx_file")
_TABLE = Loader("csv", "delimited", plain=True)
_JSON = Loader("json", "structured", plain=True)
_SLIDES = Loader("pptx", "slides")
_BOOK = Loader("xlsx", "workbook")
_PICTURE = Loader("image", "picture")
_CODE_SUFFIXES = (
    "py", "pyi", "js", "mjs", "ts", "tsx", "jsx", "java", "c", "h", "cc", "cpp", "hpp", "cs", "go",
    "rs", "rb", "php", "swift", "kt", "kts", "scala", "sh", "bash", "zsh", "ps1", "bat", "sql", "r",
    "lua", "pl", "m", "mm", "dart", "ex", "exs", "erl", "hs", "ml", "fs", "clj", "jl", "vb", "pas",
    "asm", "s", "css", "scss", "less", "vue", "svelte", "yaml", "yml", "toml", "ini", "cfg", "conf",
    "properties", "xml", "xsd", "proto", "graphql", "cmake", "gradle", "tf", "diff", "patch",
)  # fmt: skip

READABLE = (
    "PDF, Word (docx), PowerPoint (pptx), Excel (xlsx, xls), OpenDocument (odt, odp, ods), RTF, "
    "EPUB, web pages, mails (eml, msg), Markdown, text, CSV, JSON, source code, pictures (with "
    "tesseract) and ZIP archives of these"
)
"""For sentences."""
LOADERS: dict[str, Loader] = {
    ".txt": _TEXT,
    ".text": _TEXT,
    ".log": _TEXT,
    ".rst": _TEXT,
    ".adoc": _TEXT,
    ".org": _TEXT,
    ".tex": _TEXT,
    ".srt": _TEXT,
    ".vtt": _TEXT,
    ".md": _MARKDOWN,
    ".markdown": _MARKDOWN,
    ".pdf": Loader("pdf", "pdf_file"),
    ".docx": _DOCX,
    ".docm": _DOCX,
    ".pptx": _SLIDES,
    ".pptm": _SLIDES,
    ".ppsx": _SLIDES,
    ".xlsx": _BOOK,
    ".xlsm": _BOOK,
    ".xlsb": _BOOK,
    ".xls": _BOOK,
    ".ods": _BOOK,
    ".odt": Loader("odt", "open_document"),
    ".odp": Loader("odp", "open_document"),
    ".rtf": Loader("rtf", "rich_text"),
    ".epub": Loader("epub", "epub"),
    ".eml": Loader("mail", "mail"),
    ".msg": Loader("mail", "mail"),
    ".html": _HTML,
    ".htm": _HTML,
    ".xhtml": _HTML,
    ".csv": _TABLE,
    ".tsv": _TABLE,
    ".json": _JSON,
    ".jsonl": _JSON,
    ".ndjson": _JSON,
    ".ipynb": Loader("md", "structured"),
    ".png": _PICTURE,
    ".jpg": _PICTURE,
    ".jpeg": _PICTURE,
    ".tif": _PICTURE,
    ".tiff": _PICTURE,
    ".webp": _PICTURE,
    ".bmp": _PICTURE,
    **{f".{suffix}": _CODE for suffix in _CODE_SUFFIXES},
}
