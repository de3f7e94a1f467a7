"""Sentences of other rooms in Korean, found by their English wording. Knows no page.

Rooms that know no language give complete English sentences. Those that people meet most stand in
`locales/sentences.ko.json`, as patterns; any other stays English, which still says what is wrong.
"""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path


def in_language(language: str, text: str) -> str:
    """The text in the language of the page, as far as there are translations of its sentences."""
    if language == "en":
        return text
    # One pattern may stand for several sentences, so the whole is looked for first.
    whole = _korean(text)
    if whole is not None:
        return whole
    return " ".join(_korean(sentence) or sentence for sentence in _BETWEEN.split(text))


_BETWEEN = re.compile(r"(?<=[.!?]) (?=[A-Z])")
_OURS = ("advice", "kind", "formats", "what", "how")
"""Blanks that hold words of this program, not names or what others say."""
_PAGES = re.compile(r"pages? (\d[\d, -]*)")


def _korean(text: str) -> str | None:
    for pattern, korean in _patterns():
        found = pattern.fullmatch(text)
        if found:
            values = found.groupdict()
            return korean.format(**{name: _value(name, value) for name, value in values.items()})
    return None


def _value(name: str, value: str) -> str:
    """What fills a blank: our own words and pages in Korean, all else as it is."""
    if name in _OURS:
        return _korean(value) or value
    return _PAGES.sub(r"\1쪽", value) if name == "pages_shown" else value


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
