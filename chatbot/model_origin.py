"""Where the name of a model that cannot be loaded comes from. Loads nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from chatbot.saved_settings import FILE, read_saved
from chatbot.settings import Settings, load_settings


def origin_hint(settings: Settings, flags: Mapping[str, Any]) -> str:
    """A sentence, behind a blank, for a model that was chosen on the page: whoever types a command
    did not name it. "" for one that is named by a flag, the environment or chatbot.toml."""
    if read_saved(settings.data_dir).get("model") != settings.model:
        return ""
    # The same without what the page has saved, which lies in the data folder.
    elsewhere = {**flags, "data_dir": settings.data_dir / "no-page-settings"}
    if load_settings(elsewhere).model == settings.model:
        return ""
    return (
        f" The model {settings.model} was chosen in the settings of the page, which are kept in "
        f"{settings.data_dir / FILE}; --model demo goes past it."
    )
