"""The plan against reality: what was to be taken, and what a process really took.

Each row is measured in a process of its own, so that no memory of another one is used again.
"""

from __future__ import annotations

import argparse
from typing import Any

from chatbot.commands.columns import columns
from chatbot.commands.plan_child import Case, in_child
from chatbot.console import Console
from chatbot.settings import Settings

WINDOWS = (512, 2048, 4096)
VALUE_BYTES = {2: "bfloat16", 4: "float32"}
REPLY_TOKENS = 8
MIB = 1 << 20


def measure(arguments: argparse.Namespace, settings: Settings, console: Console) -> dict[str, Any]:
    """Rows of planned and measured bytes, and the largest error of each kind."""
    rows = []
    # Both types of numbers can be compared only for weights that are not packed.
    weights = "none" if settings.quantization == "auto" else settings.quantization
    update = {"device": "cpu", "window_tokens": 0, "quantization": weights}
    settings = settings.model_copy(update=update)
    for value_bytes, dtype in VALUE_BYTES.items():
        for window in WINDOWS:
            console.progress(f"{dtype}, window of {window} tokens")
            case = Case(value_bytes, window - REPLY_TOKENS, REPLY_TOKENS)
            rows.append({"dtype": dtype, "window_tokens": window, **in_child(settings, case)})
    _show(rows, console)
    return {
        "rows": rows,
        "kv_error": largest_error(rows, "kv_bytes"),
        "weights_error": largest_error(rows, "weights_bytes"),
        "peak_error": largest_error(rows, "peak_bytes"),
    }


def largest_error(rows: list[dict[str, Any]], key: str) -> float:
    """The largest difference of planned and measured bytes, as a share of the measured."""
    errors = (
        abs(row["planned"][key] - row["measured"][key]) / max(1, row["measured"][key])
        for row in rows
    )
    return float(round(max(errors), 4))


def _show(rows: list[dict[str, Any]], console: Console) -> None:
    keys = ("weights_bytes", "kv_bytes", "peak_bytes")
    head = ["dtype", "window", *(f"{key.removesuffix('_bytes')}, MiB" for key in keys)]
    lines = [
        [
            row["dtype"],
            str(row["window_tokens"]),
            *(f"{row['planned'][k] / MIB:.1f} / {row['measured'][k] / MIB:.1f}" for k in keys),
        ]
        for row in rows
    ]
    console.result(f"Planned / measured\n{columns(head, lines)}")
