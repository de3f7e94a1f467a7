"""One reply in the making: what it was asked and what it has so far; knows no model."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from chatbot.engine.base import SamplingParams
from chatbot.engine.text_stream import TextStream
from chatbot.messages import Notice, Usage


@dataclass(slots=True)
class ReplyState:
    """See the module."""

    prompt_ids: tuple[int, ...]
    params: SamplingParams
    stream: TextStream
    stopped: Callable[[], bool]
    started_s: float = field(default_factory=time.perf_counter)
    prefill_s: float | None = None
    """None while the prompt is being read."""
    cached_tokens: int = 0
    completion_tokens: int = 0
    evicted_tokens: int = 0
    notices: tuple[Notice, ...] = ()
    """What the user should know about how it was read."""

    def restart(self) -> None:
        """Read the prompt from the beginning, as when memory ran out; time goes on."""
        assert self.completion_tokens == 0, "nothing that was told can be taken back"
        self.prefill_s = None
        self.cached_tokens = 0
        self.evicted_tokens = 0
        self.notices = ()

    def usage(self) -> Usage:
        """Tokens and seconds until now."""
        elapsed_s = time.perf_counter() - self.started_s
        prefill_s = elapsed_s if self.prefill_s is None else self.prefill_s
        return Usage(
            prompt_tokens=len(self.prompt_ids),
            cached_tokens=self.cached_tokens,
            completion_tokens=self.completion_tokens,
            prefill_s=prefill_s,
            decode_s=elapsed_s - prefill_s,
            evicted_tokens=self.evicted_tokens,
        )
