"""Sentences of other rooms in Korean, found by their English wording. Knows no page.

Rooms that know no language give complete English sentences. Those that people meet most stand in
`locales/sentences.ko.json`, as patterns; any other stays English, which still says what is wrong.
"""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path


def in_language(language: str, sentence: str) -> str:
    """The sentence in the language of the page, if there is a translation of it."""
    if language == "en":
        return sentence
    for pattern, korean in _patterns():
        found = pattern.fullmatch(sentence)
        if found:
            return korean.format(**found.groupdict())
    return sentence


@cache
def _patterns() -> tuple[tuple[re.Pattern[str], str], ...]:
    path = Path(__file__).parent / "locales" / "sentences.ko.json"
    pairs: dict[str, str] = json.loads(path.read_text(encoding="utf-8"))
    return tuple((_pattern(english), korean) for english, korean in pairs.items())


def _pattern(english: str) -> re.Pattern[str]:
    """`{name}` stands for any text, once; the rest for itself."""
    parts = re.split(r"\{(\w+)\}", english)
    body = "".join(
        f"(?P<{part}>.*?)" if number % 2 else re.escape(part) for number, part in enumerate(parts)
    )
    return re.compile(body, re.DOTALL)
