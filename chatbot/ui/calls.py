"""What a browser sends with an event, checked: anyone can call an endpoint with anything."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from chatbot.ui.i18n import Language, pick_language, tr
from chatbot.ui.inbox import Inbox, Waiting, clean_name

_ID = re.compile(r"[A-Za-z0-9_.-]{1,100}")
MAX_FILES_AT_ONCE = 50
_REJECTIONS = ("too_large", "lost", "full", "refused", "disk_full", "not_saved")


@dataclass(frozen=True, slots=True)
class Call:
    """Who calls and with what: the tab's session, the browser's mark, and its claims."""

    session: str
    owner: str
    conversation_id: str = ""
    data: Mapping[str, Any] = field(default_factory=dict)

    def id(self, key: str = "id") -> str:
        """An id among the data; "" when it is none."""
        return checked_id(self.data.get(key))


def files_of(call: Call, inbox: Inbox) -> list[Waiting]:
    """The files that the caller has sent and now hands over."""
    tokens = call.data.get("tokens")
    if not isinstance(tokens, list):
        return []
    taken = (inbox.take(call.owner, str(t)) for t in tokens[:MAX_FILES_AT_ONCE])
    return [file for file in taken if file is not None]


def rejected_of(call: Call, language: Language, limit: int) -> list[tuple[str, str]]:
    """Files that the page's script could not send, each with its sentence."""
    failed = call.data.get("failed")
    entries = failed[:MAX_FILES_AT_ONCE] if isinstance(failed, list) else []
    found: list[tuple[str, str]] = []
    for entry in entries:
        reason = entry.get("reason") if isinstance(entry, dict) else None
        if reason in _REJECTIONS:
            name = clean_name(str(entry.get("name", "")))
            found.append((name, tr(language, f"upload.{reason}", limit=limit)))
    return found


def text_of(call: Call) -> str:
    """The text among the data; "" for none."""
    text = call.data.get("text")
    return text if isinstance(text, str) else ""


def checked_id(value: object) -> str:
    """`value` if it has the form of an id, else ""."""
    return value if isinstance(value, str) and _ID.fullmatch(value) else ""


def language_of(call: Call) -> Language:
    """The language that the page's script asks in."""
    return pick_language(chosen=str(call.data.get("language", "")), setting="", accept="")
