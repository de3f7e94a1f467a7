"""The window that the settings ask for, checked against the model; knows only numbers."""

from __future__ import annotations

from chatbot.engine.model_figures import ModelFigures
from chatbot.errors import SettingsError
from chatbot.settings import Settings


def checked_window(settings: Settings, figures: ModelFigures) -> int:
    """`settings.window_tokens`; raises SettingsError when the model was trained for less."""
    if settings.window_tokens > figures.window_tokens:
        message = (
            f"window_tokens is {settings.window_tokens}, but the model was trained for "
            f"{figures.window_tokens}; choose at most that."
        )
        raise SettingsError(message)
    return settings.window_tokens
