"""One model call after another: prefill in pieces, then a token at a time.

Knows token ids, a cache and a model; knows nothing of text, conversations or locks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

import torch

from chatbot.engine.kv_cache import truncate
from chatbot.engine.kv_policy import SINK_TOKENS, tokens_to_drop
from chatbot.engine.kv_sink import drop_middle
from chatbot.engine.llama_step import LlamaStep, can_step
from chatbot.messages import Notice


class TokenReader(Protocol):
    """Reads tokens one after another and says what may come next."""

    @property
    def read_tokens(self) -> int:
        """How many tokens have been read, those that were in the cache included."""
        ...

    @property
    def dropped_tokens(self) -> int:
        """How many of them are no longer looked at, since the cache had no room."""
        ...

    @property
    def held_ids(self) -> tuple[int, ...] | None:
        """What the cache holds; None when it is that of no prompt any more."""
        ...

    def notices(self) -> tuple[Notice, ...]:
        """What the user should know about how the tokens were read."""
        ...

    def prefill(
        self, prompt_ids: Sequence[int], *, piece_tokens: int
    ) -> Iterator[tuple[int, torch.Tensor]]:
        """Read the rest of a prompt in pieces; yield tokens done and logits after each piece.

        Logits have shape (vocabulary,). Pieces bound the memory that one call takes.
        """
        ...

    def read(self, token_ids: Sequence[int]) -> torch.Tensor:
        """Read tokens; logits of shape (vocabulary,) after the last of them.

        Raises Stopped when the gate on the model says so; all is then as before.
        """
        ...


class Reader:
    """Feeds tokens to a model and keeps count of what its cache holds; see `TokenReader`.

    With `limit_tokens`, the cache holds no more than that: what was read after the first few
    tokens is dropped, oldest first, and the rest moves up.
    """

    def __init__(
        self,
        model: Any,
        cache: Any,
        held_ids: Sequence[int],
        *,
        limit_tokens: int | None = None,
    ) -> None:
        self._model = model
        self.cache = cache
        step = getattr(model, "one_token", None)
        self._step = step if step is not None and can_step(cache) else None
        self._ids: list[int] = list(held_ids)
        self._position = len(held_ids)
        """Of the next token; behind the last one in the cache, where some are left out."""
        self._limit_tokens = limit_tokens
        self.dropped_tokens = 0
        self._moved_tokens = 0
        """Dropped tokens for which the later ones moved up."""

    @property
    def read_tokens(self) -> int:
        """See `TokenReader`."""
        return len(self._ids)

    @property
    def held_ids(self) -> tuple[int, ...] | None:
        """See `TokenReader`."""
        return None if self.dropped_tokens else tuple(self._ids)

    def notices(self) -> tuple[Notice, ...]:
        """See `TokenReader`."""
        if not self._moved_tokens:
            return ()
        text = (
            f"The reply outgrew its cache: its {self._moved_tokens} oldest tokens, of the prompt "
            "first, were left out while it was made; raise kv_cache_bytes or the window to keep "
            "them."
        )
        return (Notice("memory_evicted_in_reply", text, {"tokens": self._moved_tokens}),)

    def prefill(
        self, prompt_ids: Sequence[int], *, piece_tokens: int
    ) -> Iterator[tuple[int, torch.Tensor]]:
        """See `TokenReader`."""
        while self.read_tokens < len(prompt_ids):
            start = self.read_tokens
            logits = self.read(prompt_ids[start : start + piece_tokens])
            yield self.read_tokens, logits

    @torch.inference_mode()
    def read(self, token_ids: Sequence[int]) -> torch.Tensor:
        """See `TokenReader`."""
        self._make_room(len(token_ids))
        if self._step is not None and len(token_ids) == 1:
            return self._read_one(self._step, token_ids[0])
        ids = torch.tensor([list(token_ids)], dtype=torch.long, device=self._model.device)
        held = len(self._ids) - self.dropped_tokens
        options: dict[str, Any] = {}
        if held != self._position:  # else the model counts for itself
            ends = self._position, self._position + len(token_ids)
            options["position_ids"] = torch.arange(*ends, device=self._model.device)[None]
        try:
            # One row of logits: all rows of a long prompt would take gigabytes.
            output = self._model(
                input_ids=ids, cache=self.cache, use_cache=True, logits_to_keep=1, **options
            )
        except Stopped:
            truncate(self.cache, held)
            raise
        self._ids.extend(token_ids)
        self._position += len(token_ids)
        logits: torch.Tensor = output.logits[0, -1]
        return logits

    def _read_one(self, step: LlamaStep, token_id: int) -> torch.Tensor:
        """As the model itself, with less around the computation."""
        held = len(self._ids) - self.dropped_tokens
        try:
            logits = step(token_id, self.cache, self._position)
        except Stopped:
            truncate(self.cache, held)
            raise
        self._ids.append(token_id)
        self._position += 1
        return logits

    def _make_room(self, new_tokens: int) -> None:
        if self._limit_tokens is None:
            return
        held = len(self._ids) - self.dropped_tokens
        drop = tokens_to_drop(held, new_tokens, self._limit_tokens)
        if drop:
            # Counted first: a cache that was changed by half is that of no prompt either.
            self.dropped_tokens += drop
            self._moved_tokens += drop
            self._position -= drop
            drop_middle(self._model, self.cache, SINK_TOKENS, SINK_TOKENS + drop)


class Stopped(Exception):
    """A model call was given up because the reply was stopped."""


class StopGate:
    """Lets a model call be stopped between two layers, so that no piece has to be waited for.

    One piece of a long prompt takes seconds on a CPU, one layer of it a fraction.
    """

    def __init__(self, model: Any) -> None:
        self._stopped: Callable[[], bool] = _never
        for layer in decoder_layers(model):
            layer.register_forward_pre_hook(lambda *_: self.check())
        step = getattr(model, "one_token", None)
        if step is not None:
            step.before_layer = self.check

    def watch(self, stopped: Callable[[], bool]) -> None:
        """Ask `stopped` before each layer from now on."""
        self._stopped = stopped

    def unwatch(self) -> None:
        """Ask nobody any more."""
        self._stopped = _never

    def check(self) -> None:
        """Raises Stopped when it is time."""
        if self._stopped():
            raise Stopped


def decoder_layers(model: Any) -> Sequence[Any]:
    """The layers of a model; empty for a layout that is not known, which only stops later."""
    layers = getattr(model.get_decoder(), "layers", None)
    return list(layers) if layers is not None else []


def _never() -> bool:
    return False
