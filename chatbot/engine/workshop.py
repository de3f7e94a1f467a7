"""What replies on this machine are made with, and how memory is given back; makes none itself."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from chatbot.engine.failures import out_of_memory
from chatbot.engine.kv_cache import new_cache
from chatbot.engine.kv_lease import Lease
from chatbot.engine.kv_promise import KVStore
from chatbot.engine.loading import LoadedModel
from chatbot.engine.memory_watch import MemoryWatch
from chatbot.engine.model_turn import ModelTurn
from chatbot.engine.process_memory import give_back_freed
from chatbot.engine.reply_state import ReplyState
from chatbot.errors import ModelError
from chatbot.messages import MemoryFigures


@dataclass(frozen=True, slots=True)
class Workshop:
    """What a reply is made with."""

    loaded: LoadedModel
    store: KVStore
    turn: ModelTurn
    watch: MemoryWatch
    stop_ids: frozenset[int]
    memory: Callable[[], MemoryFigures]
    steps_taken: Counter[str]
    """Counts of steps against short memory, over all replies."""

    def room_tokens(self, lease: Lease, *, failed: bool) -> int:
        """What a cache takes at once; where memory is short, no more than this reply needs."""
        roomy = not failed and self.watch.can_fill(lease.room_tokens)
        return lease.room_tokens if roomy else lease.limit_tokens

    def shortage(self, reply: ReplyState) -> str:
        """The sentence for a reply that ran out of memory, with what was planned for it."""
        weights_bytes = self.loaded.plan.weights_bytes
        total_tokens = len(reply.prompt_ids) + reply.params.max_tokens
        return out_of_memory(
            len(reply.prompt_ids),
            reply.completion_tokens,
            needed_bytes=weights_bytes + self.watch.window_bytes(total_tokens),
            weights_bytes=weights_bytes,
            free_bytes=self.watch.free_bytes,
        )


def can_quantize(model: Any) -> bool:
    """Whether the model's caches can be kept in 8 bit."""
    try:
        new_cache(model, "int8")
    except ModelError:
        return False
    return True


def release_memory() -> None:
    """Hand freed memory back: Python's, the device allocator's and the C library's."""
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    give_back_freed()
