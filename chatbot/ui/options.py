"""Changes of settings on the page: checked, kept for the next start, used at once where that goes.

Knows no widget.
"""

from __future__ import annotations

import threading
from typing import Any

from pydantic import ValidationError

from chatbot.saved_settings import read_saved, save
from chatbot.services import Services
from chatbot.settings import Settings
from chatbot.ui.options_html import LIVE, NAMES, Form


class Options:
    """The settings of the running program and those saved for its next start."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._lock = threading.Lock()

    def form(self, system_text: str, refused: dict[str, str] | None = None) -> Form:
        """What the page shows."""
        settings = self._services.settings
        saved = read_saved(settings.data_dir)
        names = NAMES if settings.auth is None else tuple(LIVE)
        return Form(self._services.chat.settings, saved, refused or {}, system_text, names)

    def change(self, name: str, typed: str) -> bool:
        """Take a value as it was typed; False, with nothing changed, if it cannot be.

        Raises OSError when it cannot be kept.
        """
        # The machine and its model are not one person's.
        if name not in NAMES or (self._services.settings.auth and name not in LIVE):
            return False
        with self._lock:
            used = self._services.chat.settings
            changed = _with(used, name, typed)
            if changed is None:
                return False
            data_dir = self._services.settings.data_dir
            value = getattr(changed, name)
            save(data_dir, {**read_saved(data_dir), name: value})
            if name in LIVE:
                self._services.chat.change_settings(changed)
        return True


def _with(used: Settings, name: str, typed: str) -> Settings | None:
    """The settings with one of them changed, or None if that cannot be."""
    info = Settings.model_fields[name]
    value: Any = typed.strip()
    if value == "":
        value = info.get_default(call_default_factory=True, validated_data={})
    try:
        return Settings(**{**used.model_dump(), name: value})
    except ValidationError:
        return None
