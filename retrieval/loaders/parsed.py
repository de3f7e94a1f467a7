"""What a loader hands back, and its way through JSON. Knows no format."""

from __future__ import annotations

import json
from dataclasses import dataclass

from retrieval.loaders.characters import sanitize, sanitize_line
from retrieval.types import Page


@dataclass(frozen=True, slots=True)
class Parsed:
    """The pages of a file and sentences about what could not be read."""

    pages: tuple[Page, ...]
    warnings: tuple[str, ...] = ()


def whole(text: str, warnings: tuple[str, ...] = ()) -> Parsed:
    """A file of a format without pages."""
    return Parsed((Page(None, text),), warnings)


def sanitized(parsed: Parsed) -> Parsed:
    """Every text, label and warning free of characters that no store, log or index can take."""
    pages = tuple(
        Page(page.number, sanitize(page.text), page.label and (sanitize_line(page.label) or None))
        for page in parsed.pages
    )
    return Parsed(pages, tuple(sanitize_line(warning) for warning in parsed.warnings))


def to_json(parsed: Parsed) -> str:
    """For the way out of the parser's process; ASCII, so that no encoding can spoil it."""
    pages = [[page.number, page.text, page.label] for page in parsed.pages]
    return json.dumps({"pages": pages, "warnings": list(parsed.warnings)})


def from_json(text: str) -> Parsed:
    """Raises KeyError, TypeError or ValueError when the text is not what `to_json` writes."""
    data = json.loads(text)
    pages = tuple(Page(number, text, label) for number, text, label in data["pages"])
    return Parsed(pages, tuple(data["warnings"]))
