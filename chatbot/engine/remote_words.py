"""A server's own words about a fault, whatever form they have. Pure; knows no server."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

import openai

MAX_SHOWN = 200
_KEYS = ("message", "detail", "error", "msg", "error_description", "description", "errors", "title")
_REASONS, _DEPTH = 3, 4
"""Of a list, so many are told; nothing is looked for deeper."""
_MARKUP = re.compile(r"\s*<(?:!doctype|html|head|body|\?xml)\b", re.IGNORECASE)
_TITLE = re.compile(r"<title[^>]*>([^<]{1,400})</title>", re.IGNORECASE)
_UNSEEN = re.compile(r"[\x00-\x1f\x7f-\x9f\s]+")


def shown(text: str) -> str:
    """A server's own words on one line, not endlessly long, and nothing that steers a terminal."""
    line = _UNSEEN.sub(" ", text).strip()
    return line if len(line) <= MAX_SHOWN else line[:MAX_SHOWN] + "…"


def whole_body(error: openai.APIError) -> object:
    """What a server answered. The client keeps only what stands under "error", be it nothing."""
    if not isinstance(error, openai.APIStatusError) or not error.response.is_stream_consumed:
        return error.body
    text = error.response.text.strip()
    try:
        return json.loads(text)
    except ValueError:  # also a number of more digits than Python reads
        return text


def fields_of(body: object) -> Mapping[str, Any]:
    """The fields of an error, which some servers put under "error"."""
    if not isinstance(body, Mapping):
        return {}
    inner = body.get("error")
    return inner if isinstance(inner, Mapping) else body


def words_of(body: object) -> str:
    """What a server says is wrong, on one line; empty where it says nothing.

    It may be a text, a field of one of several names, or, as FastAPI has it, a list of what is
    wrong with each field of the request. Of a page only the title is for people.
    """
    return shown("; ".join(_words(body, _DEPTH)))


def says_fault(body: object) -> bool:
    """Whether an answer that is no reply is the report of a fault."""
    if not isinstance(body, Mapping):
        return False
    fault = any(body.get(key) for key in ("error", "errors", "detail", "message"))
    return not body.get("choices") and (fault or body.get("object") == "error")


def _words(body: object, depth: int) -> Iterator[str]:
    if isinstance(body, str):
        found = _TITLE.search(body) if _MARKUP.match(body) else None
        text = (found[1] if found else "") if _MARKUP.match(body) else body
        yield from [text.strip()] if text.strip() else []
    elif depth and isinstance(body, Mapping):
        for key in _KEYS:
            if words := "; ".join(_words(body.get(key), depth - 1)):
                yield _placed(body.get("loc"), words)
                return
    elif depth and isinstance(body, list):
        for one in body[:_REASONS]:
            yield from _words(one, depth - 1)


def _placed(place: object, words: str) -> str:
    """With the field of the request that is meant; its first part is always "body"."""
    if not isinstance(place, list):
        return words
    name = ".".join(str(part) for part in place[1:] if isinstance(part, str | int))
    return f"{name}: {words}" if name else words
