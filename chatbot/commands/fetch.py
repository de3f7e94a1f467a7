"""`fetch`: gets the embedded models, so that later starts need nothing from outside."""

from __future__ import annotations

import argparse

from chatbot.console import Console
from chatbot.engine.models import fetch
from chatbot.settings import Settings


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """No arguments of its own."""


def run(arguments: argparse.Namespace, settings: Settings, console: Console) -> int:
    """Fetch what is missing; what is there is only checked."""
    for folder in fetch(settings.cache_dir, console.model_progress):
        console.note(f"Ready: {folder}")
    return 0
