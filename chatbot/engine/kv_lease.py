"""A cache on loan to one reply: what it may hold and in which way it is read; keeps nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from chatbot.engine.decode import Reader, TokenReader
from chatbot.engine.kv_cache import truncate
from chatbot.engine.kv_none import UncachedReader
from chatbot.engine.kv_policy import CachePolicy
from chatbot.engine.kv_sink import can_drop_middle
from chatbot.engine.kv_snap import OBSERVED_TOKENS, SnapReader, can_observe, least_kept
from chatbot.errors import EngineError


@dataclass(slots=True, eq=False)
class Lease:
    """See the module. Only the reply that has it may change the cache."""

    conversation_id: str | None
    cache: Any
    """None: the reply is to be made without one."""
    held_ids: tuple[int, ...] = ()
    """What the cache holds already: tokens at the start of the prompt."""
    prompt_tokens: int = 0
    total_tokens: int = 0
    """Prompt and reply together at most."""
    limit_tokens: int = 0
    """What the cache may hold; less than `total_tokens` where the bound has no room for all."""
    room_tokens: int = 0
    """What to take storage for at once: room to grow for a chat, if the bound has it."""
    window_tokens: int | None = None
    """Positions that there are; None: as many as the cache may hold."""
    reserved_bytes: int = 0
    is_exact: bool = True
    """What is held is bit for bit what a fresh start would hold."""
    policy: CachePolicy = field(default_factory=CachePolicy)
    kept_ids: tuple[int, ...] | None = None
    """Set by `keep`; None drops the cache when the loan ends."""
    is_void: bool = False
    """The conversation was forgotten meanwhile, so nothing of it may come back."""

    @property
    def reused_tokens(self) -> int:
        """So many tokens at the start of the prompt are in the cache already."""
        return len(self.held_ids)

    def reader(self, model: Any) -> TokenReader:
        """What reads the prompt and the reply under the policy of this loan.

        Raises EngineError when the cache is too small for all and nothing of it can be dropped.
        """
        if self.cache is None:
            return UncachedReader(model)
        limit = self.limit_tokens or self.total_tokens
        if limit < self.total_tokens and not can_drop_middle(model, self.cache):
            raise EngineError(
                f"The cache has room for {limit} tokens of the {self.total_tokens} that this "
                "reply may need, and this model's cannot be shortened; raise kv_cache_bytes."
            )
        # A prompt that is read ahead is for the next one to begin with, so it stays whole.
        replies = self.total_tokens > self.prompt_tokens + 1
        if self.policy.in_prompt == "snapkv" and replies:
            return self._snap_reader(model, limit)
        return Reader(model, self.cache, self.held_ids, limit_tokens=limit)

    def _snap_reader(self, model: Any, limit_tokens: int) -> SnapReader:
        keep = self.policy.prompt_keep_tokens
        if self.prompt_tokens > least_kept(keep) and can_observe(model, self.cache):
            # All that vote are read, so that the same is kept as after a fresh start.
            self.held_ids = self.held_ids[: self.prompt_tokens - OBSERVED_TOKENS]
            truncate(self.cache, len(self.held_ids))
        return SnapReader(
            model,
            self.cache,
            self.held_ids,
            limit_tokens=limit_tokens,
            keep_tokens=keep,
            window_tokens=self.window_tokens,
        )

    def keep(self, token_ids: Sequence[int] | None) -> None:
        """Let the store have the cache back at the end; it holds exactly `token_ids`.

        None: it is that of no prompt any more, and goes.
        """
        if token_ids is None or self.cache is None:
            return
        assert self.cache.get_seq_length() == len(token_ids), "the cache holds other tokens"
        self.kept_ids = tuple(token_ids)
