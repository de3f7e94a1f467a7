"""One turn under torch's profiler: the operations that take most time and most memory."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import Any

from chatbot.chat import TurnDone
from chatbot.commands.bench_engine import open_engine, own_services
from chatbot.commands.columns import columns
from chatbot.console import Console
from chatbot.engine.base import Engine
from chatbot.engine.profiling import Operation, profiled
from chatbot.errors import ChatbotError, InputError
from chatbot.settings import Settings

REPLY_TOKENS = 16
"""Every token adds thousands of events to the trace."""
SHOWN = 12
KIB = 1 << 10
QUESTION = "Tell me about the keeper of a lighthouse and his lamps. " * 20


def measure(arguments: argparse.Namespace, settings: Settings, console: Console) -> dict[str, Any]:
    """The top operations of a turn, and its trace. Raises InputError for a file as folder."""
    if arguments.out.exists() and not arguments.out.is_dir():
        raise InputError(f"{arguments.out} is no folder; choose another one with --out.")
    settings = settings.model_copy(
        update={"reply_tokens": settings.reply_tokens or REPLY_TOKENS, "summary": "off"}
    )

    def wrap(own: Settings) -> Engine:
        return open_engine(own, console).engine

    with own_services(settings, wrap) as services:
        conversation_id = services.store.create_conversation().id
        list(services.chat.reply(conversation_id, "Hello!"))  # so that nothing is done only once
        services.chat.wait_for_folds()
        with profiled(arguments.out) as profile:
            *_, last = services.chat.reply(conversation_id, QUESTION)
        assert isinstance(last, TurnDone)
        usage = last.turn.usage
        if usage is None or last.turn.finish not in ("stop", "length"):
            raise ChatbotError(f"The turn ended as {last.turn.finish}; ask again with --debug.")
    by_time, by_memory = profile.by_time(SHOWN), profile.by_memory(SHOWN)
    for title, operations in (("time", by_time), ("memory", by_memory)):
        console.result(f"By {title}\n{_table(operations, profile.total_us)}\n")
    console.result(f"Trace: {profile.trace} (open it with chrome://tracing or ui.perfetto.dev)")
    return {
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "prefill_s": round(usage.prefill_s, 3),
        "decode_s": round(usage.decode_s, 3),
        "by_time": [asdict(operation) for operation in by_time],
        "by_memory": [asdict(operation) for operation in by_memory],
        "trace": str(profile.trace),
        "snapshot": str(profile.snapshot) if profile.snapshot else None,
    }


def _table(operations: list[Operation], total_us: float) -> str:
    rows = [
        [
            o.name[:48],
            str(o.calls),
            f"{o.time_us / 1000:.1f}",
            f"{o.time_us / max(total_us, 1.0):.0%}",
            f"{o.allocated_bytes / KIB:.0f}",
        ]
        for o in operations
    ]
    return columns(["operation", "calls", "ms", "share", "KiB"], rows)
