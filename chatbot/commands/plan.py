"""`plan`: what fits into memory, from a model's configuration alone."""

from __future__ import annotations

import argparse

from chatbot.commands.common import add_json
from chatbot.console import Console
from chatbot.engine.models import kind_of
from chatbot.engine.plan_text import format_plan
from chatbot.engine.planning import plan_command
from chatbot.errors import InputError
from chatbot.settings import Settings
from chatbot.windows import DEMO_WINDOW_TOKENS


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--device-memory",
        metavar="SIZE",
        help="plan for so much memory, such as 12GiB, instead of what is free now: that of a CUDA "
        "device, or of this machine with --device cpu",
    )
    add_json(parser)


def run(arguments: argparse.Namespace, settings: Settings, console: Console) -> int:
    """Nothing is loaded; only the configuration of a hub model is fetched.

    Exit code 0 also for a plan that does not fit: that is an answer, and `fits` tells it.
    """
    if settings.engine_url:
        raise InputError("The server at --engine-url plans its own memory; leave --engine-url out.")
    if not settings.window_tokens and kind_of(settings.model) == "demo":
        settings = settings.model_copy(update={"window_tokens": DEMO_WINDOW_TOKENS})
    report = plan_command(settings, arguments.device_memory)
    if arguments.json:
        console.json(report)
    else:
        console.result(format_plan(report))
    return 0
