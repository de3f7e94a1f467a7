"""What fits into the memory that is free now: the window of the next turn, and the next step.

Knows the figures of a model; knows no cache and no prompt.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from chatbot.engine.cache_folder import gib
from chatbot.engine.device_memory import Memory
from chatbot.engine.failures import MemoryIsShort
from chatbot.engine.memory import MIB, CacheKind, kv_bytes_per_token, working_bytes
from chatbot.engine.model_figures import ModelFigures
from chatbot.engine.process_memory import give_back_freed

STEPS = 8
"""A window shrinks by eighths, so that small changes of free memory do not change the prompt."""
MARGIN_BYTES = 64 * MIB
"""Is never planned for: what others on the machine may take between a look and the next."""
GROW_BYTES = 256 * MIB
"""So much more than needed must be free before a shrunken window grows again."""


@dataclass(frozen=True, slots=True)
class Needs:
    """What a window needs beside the weights."""

    figures: ModelFigures
    cache: CacheKind
    value_bytes: int
    piece_tokens: int

    def window_bytes(self, window_tokens: int) -> int:
        """Cache and work of a full window."""
        cached = self.cache != "none"
        work = self._work(self.piece_tokens, window_tokens, cached=cached)
        return window_tokens * self._per_token() + work

    def piece_bytes(self, new_tokens: int, held_tokens: int, *, cached: bool = True) -> int:
        """Cache and work of reading some tokens behind those that are held.

        Without a cache those are read again with them.
        """
        tokens = held_tokens + new_tokens
        if not cached:
            return self._work(self.piece_tokens, tokens, cached=False)
        return new_tokens * self._per_token() + self._work(new_tokens, tokens)

    def _per_token(self) -> int:
        return kv_bytes_per_token(self.figures, self.cache)

    def _work(self, piece_tokens: int, window_tokens: int, *, cached: bool = True) -> int:
        return working_bytes(
            self.figures, piece_tokens, window_tokens, self.value_bytes, cached=cached
        )


def fitting_window(needs: Needs, *, available_bytes: int, full: int, now: int) -> int:
    """The window to use: `full`, or the most eighths of it that fit, at least one.

    `now` is the window in use. One that has shrunk grows only with room to spare.
    """
    steps = [full * n // STEPS for n in range(STEPS, 0, -1)]
    room = available_bytes - MARGIN_BYTES
    for window in steps:
        spare = GROW_BYTES if window > now else 0
        if needs.window_bytes(window) + spare <= room:
            return window
    return steps[-1]


class MemoryWatch:
    """Looks at free memory before it is spent. `free` measures it for the model's device."""

    def __init__(
        self, needs: Needs, free: Callable[[], Memory], *, full_window_tokens: int, on_cuda: bool
    ) -> None:
        self._needs = needs
        self._free = free
        self._full = full_window_tokens
        self._now = full_window_tokens
        # A device's allocator says itself when nothing is left; a machine kills the process.
        self._guards_steps = not on_cuda

    def window_tokens(self, evictable_bytes: int) -> int:
        """The window that fits now, if caches of so many bytes are given up for it."""
        available = self._free().available_bytes + evictable_bytes
        self._now = fitting_window(
            self._needs, available_bytes=available, full=self._full, now=self._now
        )
        return self._now

    @property
    def free_bytes(self) -> int:
        """Bytes that are free now."""
        return self._free().available_bytes

    def window_bytes(self, window_tokens: int) -> int:
        """What so long a prompt and reply need beside the weights."""
        return self._needs.window_bytes(window_tokens)

    def before_reading(self, new_tokens: int, held_tokens: int, *, cached: bool = True) -> None:
        """Raises MemoryIsShort when reading so many tokens would come near the limit."""
        needed = self._needs.piece_bytes(new_tokens, held_tokens, cached=cached) + MARGIN_BYTES
        if not self._has(needed):
            message = f"{gib(self.free_bytes)} are free and the next step may take {gib(needed)}"
            raise MemoryIsShort(message)

    def can_fill(self, window_tokens: int) -> bool:
        """Whether a cache of so many tokens fits into free memory beside the work on it."""
        return self._has(self._needs.window_bytes(window_tokens) + MARGIN_BYTES)

    def can_read_again(self, tokens: int) -> bool:
        """Whether so many tokens can be read at once without a cache."""
        return self._has(self._needs.piece_bytes(0, tokens, cached=False) + MARGIN_BYTES)

    def _has(self, needed_bytes: int) -> bool:
        if not self._guards_steps or self.free_bytes >= needed_bytes:
            return True
        give_back_freed()
        return self.free_bytes >= needed_bytes
