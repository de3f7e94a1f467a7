"""How memory grows until it is gone: with the prompt, with the reply, with replies at once.

Tells weights, cache and work apart, the plan beside the measured, each row in a new process.
"""

from __future__ import annotations

import argparse
from typing import Any

from chatbot.commands.columns import columns
from chatbot.commands.plan_child import Case, in_child
from chatbot.console import Console
from chatbot.settings import Settings

MIB = 1 << 20
CASES: dict[str, tuple[Case, ...]] = {
    "prompt": tuple(Case(0, tokens - 64, 64) for tokens in (512, 1024, 2048, 4096)),
    "reply": tuple(Case(0, 448, tokens - 448) for tokens in (512, 640, 768)),
    "replies at once": tuple(Case(0, 448, 64, n) for n in (1, 2, 4)),
}


def measure(arguments: argparse.Namespace, settings: Settings, console: Console) -> dict[str, Any]:
    """A table of bytes by what grows."""
    settings = settings.model_copy(update={"device": "cpu", "window_tokens": 0})
    rows = []
    for grows, cases in CASES.items():
        for case in cases:
            console.progress(f"{grows}: {case}")
            found = in_child(settings, case)
            rows.append({"grows": grows, **_row(case, found)})
    console.result(_table(rows))
    return {"rows": rows}


def _row(case: Case, found: dict[str, Any]) -> dict[str, Any]:
    """Work is what the process took at its peak beside weights, cache and libraries."""
    planned, measured = found["planned"], found["measured"]
    work = (
        measured["peak_bytes"]
        - measured["weights_bytes"]
        - measured["kv_bytes"]
        - planned["runtime_bytes"]
    )
    return {
        "prompt_tokens": case.prompt_tokens,
        "reply_tokens": case.reply_tokens,
        "replies_at_once": case.replies_at_once,
        "tokens": found["tokens"],
        "weights_bytes": measured["weights_bytes"],
        "kv_bytes": measured["kv_bytes"],
        "work_bytes": work,
        "peak_bytes": measured["peak_bytes"],
        "planned_kv_bytes": planned["kv_bytes"],
        "planned_work_bytes": planned["working_bytes"],
        "planned_peak_bytes": planned["peak_bytes"],
    }


def _table(rows: list[dict[str, Any]]) -> str:
    head = ["grows", "prompt", "reply", "at once", "weights", "cache", "work", "peak", "planned"]
    lines = [
        [
            row["grows"],
            str(row["prompt_tokens"]),
            str(row["reply_tokens"]),
            str(row["replies_at_once"]),
            *(f"{row[f'{key}_bytes'] / MIB:.0f}" for key in ("weights", "kv", "work", "peak")),
            f"{row['planned_peak_bytes'] / MIB:.0f}",
        ]
        for row in rows
    ]
    return f"MiB; planned is the whole at its peak\n{columns(head, lines)}"
