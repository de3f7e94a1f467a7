"""Changes of settings on the page: checked, kept for the next start, used at once where that goes.

Knows no widget.
"""

from __future__ import annotations

import logging
import threading
from typing import Any

from pydantic import ValidationError

from chatbot.engine.exchange import Exchangeable, Switch
from chatbot.saved_settings import read_saved, save
from chatbot.services import Services
from chatbot.settings import Settings
from chatbot.ui.options_html import ENGINE, LIVE, NAMES, Form

_log = logging.getLogger(__name__)


class Options:
    """The settings of the running program and those saved for its next start."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._lock = threading.Lock()
        self._dismissed: Switch | None = None

    def form(self, system_text: str, refused: dict[str, str] | None = None) -> Form:
        """What the page shows."""
        settings = self._services.settings
        saved = read_saved(settings.data_dir)
        names = NAMES if settings.auth is None else tuple(LIVE)
        engine = self._engine
        return Form(
            self._services.chat.settings,
            saved,
            refused or {},
            system_text,
            names,
            can_load=engine is not None,
            switch=self.switch,
        )

    @property
    def switch(self) -> Switch | None:
        """How the exchange of the model stands, if there is or was one and it is not dismissed."""
        switch = self._engine.switch if self._engine else None
        return None if switch is self._dismissed else switch

    def dismiss(self) -> None:
        """Say no more how the last exchange ended."""
        if self._engine and self._engine.switch and not self._engine.switch.is_running:
            self._dismissed = self._engine.switch

    @property
    def can_use_demo(self) -> bool:
        """Whether the demo model can take the place of the one in use."""
        used = self._services.chat.settings
        return self._engine is not None and used.model != "demo" and used.engine_url is None

    @property
    def is_saved_model(self) -> bool:
        """Whether the model in use is the one that was chosen on the page."""
        used = self._services.chat.settings
        return read_saved(used.data_dir).get("model") == used.model

    def load(self) -> bool:
        """Load the model with what was changed; whether that has begun."""
        if self._engine is None:
            return False
        with self._lock:
            used = self._services.chat.settings
            saved = read_saved(used.data_dir)
            wanted = {name: saved[name] for name in ENGINE if saved.get(name) is not None}
            if not wanted:
                return False
            # Each was checked when it was saved.
            settings = Settings(**{**used.model_dump(), **wanted})
        return self._engine.switch_to(settings, self._loaded)

    def _loaded(self, settings: Settings | None) -> None:
        """Use what belongs to the new model, or save that the old one is to stay."""
        with self._lock:
            chat = self._services.chat
            if settings is not None:
                taken = {name: getattr(settings, name) for name in ENGINE}
                chat.change_settings(chat.settings.model_copy(update=taken))
                return
            used = chat.settings
            kept = {name: getattr(used, name) for name in ENGINE}
            saved = read_saved(used.data_dir)
            try:
                save(used.data_dir, {**saved, **{n: v for n, v in kept.items() if n in saved}})
            except OSError as error:
                _log.warning("The settings of the model cannot be saved: %s", error)

    @property
    def _engine(self) -> Exchangeable | None:
        """The engine, if its model can be exchanged: it is not one person's."""
        engine = self._services.engine
        if self._services.settings.auth is not None or not isinstance(engine, Exchangeable):
            return None
        return engine

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
            else:
                self.dismiss()  # it tells of what was wanted before
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
