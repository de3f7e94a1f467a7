"""A plan as text for people; knows no arithmetic and no settings."""

from __future__ import annotations

from typing import Any

from chatbot.engine.cache_folder import gib
from chatbot.engine.memory import WEIGHTS


def format_plan(report: dict[str, Any]) -> str:
    """The plan as a few lines for people."""
    chosen = report["chosen"]
    measured = "free now" if report["memory_measured"] else "given"
    fits = "It fits." if chosen["fits"] else f"It lacks {gib(chosen['missing_bytes'])}."
    weights = _weights_name(chosen["quantization"], chosen["value_bytes"])
    lines = [
        f"{report['model']} ({report['parameters'] / 1e9:.2f} billion parameters, from "
        f"{report['source']})",
        f"Memory: {gib(report['available_bytes'])} {measured} on {report['device']}",
        f"Weights ({weights}): {gib(chosen['weights_bytes'])}",
        f"Window of {chosen['window_tokens']} tokens: {gib(chosen['kv_bytes'])} of cache "
        f"({chosen['kv_bytes_per_token'] / 1024:.1f} KiB a token{_times(chosen)})",
        f"Work and reserve: {gib(chosen['working_bytes'] + chosen['reserve_bytes'])}",
        f"Together: {gib(chosen['total_bytes'])}. {fits}",
        *report["advice"],
        "",
        "Largest window that fits, by weights and cache:",
    ]
    lines += [f"  {line}" for line in _table(report["options"])]
    return "\n".join(lines)


def _times(chosen: dict[str, Any]) -> str:
    n = chosen["max_concurrent_replies"]
    return f", for {n} replies at once" if n > 1 else ""


def _table(options: list[dict[str, Any]]) -> list[str]:
    lines = []
    for weights in WEIGHTS:
        cells = []
        for option in (o for o in options if o["quantization"] == weights):
            window = option["largest_window_tokens"]
            lacks = f"lacks {gib(option['missing_bytes'])}"
            cells.append(f"{option['cache']} {window or lacks:>14}")
        lines.append(f"{_weights_name(weights):<7} {'   '.join(cells)}")
    return lines


def _weights_name(weights: str, value_bytes: int = 2) -> str:
    return f"{8 * value_bytes} bit" if weights == "none" else weights
