"""Live figures of memory for people, as plain text."""

from __future__ import annotations

from collections.abc import Mapping

from chatbot.commands.columns import columns
from chatbot.engine.cache_folder import gib
from chatbot.messages import MemoryFigures


def memory_table(
    figures: MemoryFigures, titles: Mapping[str, str], *, is_elsewhere: bool = False
) -> str:
    """What weights, caches, work and the process take. `titles` names conversations by id.

    Kept caches come by conversation; one that a reply uses is in the sum alone. `is_elsewhere`:
    the model is on a server, which tells no figures of its own.
    """
    if is_elsewhere:
        return (
            "The server holds the model and the caches of chats; it says not how large they are.\n"
            f"This program takes {gib(figures.process_bytes)} now, "
            f"{gib(figures.process_peak_bytes)} at most."
        )
    rows = [
        ("weights", figures.weights_bytes, ""),
        ("caches", figures.kv_bytes, f"of at most {gib(figures.kv_bound_bytes)}"),
        *((f"  {_name(n, titles)}", taken, "") for n, taken in figures.kv_by_conversation.items()),
        ("work", figures.activations_peak_bytes, "at most in the last reply"),
        ("process", figures.process_bytes, f"{gib(figures.process_peak_bytes)} at most"),
    ]
    if figures.device_total_bytes:
        reserved, peak = gib(figures.device_reserved_bytes), gib(figures.device_peak_bytes)
        about = f"{reserved} reserved, {peak} at most, {gib(figures.device_total_bytes)} in all"
        rows.append(("device", figures.device_allocated_bytes, about))
    return columns(["", "now", ""], [[name, gib(taken), about] for name, taken, about in rows])


def _name(conversation_id: str, titles: Mapping[str, str]) -> str:
    return titles.get(conversation_id) or "(no title)"
