"""The sentences of the page in two languages, as tables with the same keys. Knows no widget."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Literal, get_args

from chatbot.messages import Notice
from chatbot.ui.sentences import in_language

Language = Literal["en", "ko"]  # as in `sentences`
LANGUAGES: tuple[Language, ...] = get_args(Language)


@cache
def table(language: Language) -> Mapping[str, str]:
    """All sentences of one language by key; `{name}` stands for a value."""
    path = Path(__file__).parent / "locales" / f"{language}.json"
    loaded: dict[str, str] = json.loads(path.read_text(encoding="utf-8"))
    return loaded


def tr(language: Language, key: str, **values: Any) -> str:
    """The sentence for `key`. Whole numbers are grouped by thousands. KeyError if unknown."""
    return _filled(table(language)[key], values)


def notice_text(language: Language, notice: Notice, *, without_reply: bool = False) -> str:
    """A notice in the language of the page; its English sentence if it is not in the tables.

    `without_reply`: nothing came of the turn, so what was done for its reply was only tried.
    """
    known = table(language)
    tried = known.get(f"tried.{notice.code}") if without_reply else None
    template = tried or known.get(f"notice.{notice.code}")
    if template is None:
        return in_language(language, notice.text)
    try:
        return _filled(template, notice.values)
    except KeyError:
        return in_language(language, notice.text)


def reason_text(language: Language, reason: str) -> str:
    """Why a piece was left out, in the language of the page if the tables know the reason."""
    number, _, rest = reason.partition(" ")
    if number.isdigit():
        template = table(language).get(f"reason.# {rest}")
        return _filled(template, {"count": int(number)}) if template else reason
    return table(language).get(f"reason.{reason}", reason)


def why_text(language: Language, reason: str) -> str:
    """Why a summary was kept or refused, in the language of the page if its kind is known."""
    kind, colon, detail = reason.partition(": ")
    template = table(language).get(f"why.{kind}")
    if template is None:
        return reason
    return f"{template}: {_detail(language, detail)}" if colon else template


_TOKENS = re.compile(r"(\d+) of (\d+) tokens")
_LANGUAGES = re.compile(r"(en|ko|other) instead of (en|ko|other)")


def _detail(language: Language, detail: str) -> str:
    """What stands behind the kind; quoted words stay as they are."""
    known = table(language)
    if found := _TOKENS.fullmatch(detail):
        count, most = map(int, found.groups())
        return tr(language, "why.# tokens", count=count, most=most)
    if found := _LANGUAGES.fullmatch(detail):
        names = [known[f"why.language {code}"] for code in found.groups()]
        return tr(language, "why.# language", found=names[0], wanted=names[1])
    return known.get(f"why.detail {detail}", detail)


def ladder_text(language: Language, step: str) -> str:
    """What a step of the memory ladder was; its name if it is not in the tables."""
    return table(language).get(f"notice.memory_{step}", step)


def pick_language(*, chosen: str, setting: str, accept: str) -> Language:
    """The person's own choice, else the setting, else what the browser asks for first.

    `accept` is an Accept-Language header; the order in it is the order of preference.
    """
    for wanted in (chosen, setting, *(part.split(";")[0] for part in accept.split(","))):
        short = wanted.strip().lower()[:2]
        if short == "en":
            return "en"
        if short == "ko":
            return "ko"
    return "en"


def _filled(template: str, values: Mapping[str, Any]) -> str:
    shown = {
        key: f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else value
        for key, value in values.items()
    }
    return template.format_map(shown)
