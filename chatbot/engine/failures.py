"""What can go wrong inside a reply, told apart and put into sentences; knows no model."""

from __future__ import annotations

from chatbot.engine.cache_folder import gib


class MemoryIsShort(MemoryError):
    """Memory would run out with the next step, so that it was not taken."""


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error means that memory ran out, on the device or on the CPU side."""
    kinds = {kind.__name__ for kind in type(error).__mro__}
    if kinds & {"MemoryError", "OutOfMemoryError"}:
        return True
    text = str(error).lower()
    return "out of memory" in text or "can't allocate memory" in text


def out_of_memory(
    prompt_tokens: int,
    reply_tokens: int,
    *,
    needed_bytes: int,
    weights_bytes: int,
    free_bytes: int,
) -> str:
    """The sentence for a reply that ran out of memory, with what was planned for it.

    `needed_bytes` counts `weights_bytes`; `free_bytes` is what was left when memory ran out.
    """
    return (
        f"Memory ran out after {prompt_tokens} prompt tokens and {reply_tokens} reply tokens: the "
        f"whole was planned to take {gib(needed_bytes)}, {gib(weights_bytes)} of it for the "
        f"weights, and {gib(free_bytes)} were free. What the reply took is given back; ask a "
        "shorter question, or choose a smaller window_tokens, quantization or model."
    )


def failed(error: BaseException) -> str:
    """The sentence for any other failure of the model."""
    text = str(error).strip()
    reason = text.splitlines()[0][:200] if text else type(error).__name__
    return f"The model failed during the reply ({reason}); ask again, or restart the program."
