"""Reads Word documents. Knows the container's limits and mammoth; runs and fetches nothing."""

from __future__ import annotations

from pathlib import Path

import mammoth
from bs4 import BeautifulSoup

from retrieval.loaders.markup import to_markdown
from retrieval.loaders.parsed import Parsed, whole


def read(path: Path, max_pages: int) -> Parsed:
    with path.open("rb") as file:
        html = mammoth.convert_to_html(file).value
    return whole(to_markdown(BeautifulSoup(html, "html.parser"), keep_links=True))
