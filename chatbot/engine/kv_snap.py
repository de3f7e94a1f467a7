"""Keeping only those tokens of a long prompt that its end attends to; knows ids and tensors.

SnapKV (Li et al., LLM Knows What You are Looking for Before Generation, arXiv 2404.14469): the
last queries of a prompt vote, for each head, for the keys that the reply will need; the votes are
pooled over neighbours, so that a token comes with those around it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch

from chatbot.engine.decode import Reader, decoder_layers
from chatbot.engine.kv_layer import PlainLayer
from chatbot.engine.kv_policy import SINK_TOKENS
from chatbot.engine.kv_sink import replace_all
from chatbot.messages import Notice

OBSERVED_TOKENS = 32
"""So many tokens at the end of a prompt vote, and stay themselves."""
POOLED_TOKENS = 7
"""Odd: a token and its neighbours on both sides."""


class SnapReader(Reader):
    """A reader that keeps at most `keep_tokens` of a prompt, chosen once it has been read.

    The cache holds all of the prompt until then. Each head of keys keeps tokens of its own, at
    the positions that they had, so the next token's position is that after the whole prompt.
    """

    def __init__(
        self,
        model: Any,
        cache: Any,
        held_ids: Sequence[int],
        *,
        limit_tokens: int,
        keep_tokens: int,
        window_tokens: int | None = None,
    ) -> None:
        """`window_tokens` bounds positions: those that are left out count among them."""
        super().__init__(model, cache, held_ids, limit_tokens=limit_tokens)
        self._left_out_tokens = 0
        self._keep_tokens = least_kept(keep_tokens)
        self._window_tokens = window_tokens or limit_tokens

    def notices(self) -> tuple[Notice, ...]:
        """See `TokenReader`."""
        if not self._left_out_tokens:
            return super().notices()
        text = (
            f"Of the long prompt, {self._left_out_tokens} tokens that its end attends to least "
            "were left out of the cache (kv_prompt_eviction)."
        )
        notice = Notice("memory_prompt_evicted", text, {"tokens": self._left_out_tokens})
        return (notice, *super().notices())

    def prefill(
        self, prompt_ids: Sequence[int], *, piece_tokens: int
    ) -> Iterator[tuple[int, torch.Tensor]]:
        """See `Reader.prefill`."""
        if len(prompt_ids) <= self._keep_tokens or not can_observe(self._model, self.cache):
            yield from super().prefill(prompt_ids, piece_tokens=piece_tokens)
            return
        front = prompt_ids[:-OBSERVED_TOKENS]
        yield from super().prefill(front, piece_tokens=piece_tokens)
        with observed_queries(self._model) as queries:
            logits = self.read(prompt_ids[self.read_tokens :])
        # Counted first: a cache that was changed by half is that of no prompt either.
        self._left_out_tokens = len(prompt_ids) - self._keep_tokens
        self.dropped_tokens += self._left_out_tokens
        # The next position is still that behind the whole prompt, so with room in the cache for
        # more, a reply would go on at positions that the model was not trained for.
        room = self._window_tokens - self._left_out_tokens
        self._limit_tokens = min(self._limit_tokens or room, room)
        keep_important(self._model, self.cache, queries, self._keep_tokens)
        yield self.read_tokens, logits


def least_kept(keep_tokens: int) -> int:
    """What is kept of a prompt at least: those that vote, and the first few."""
    return max(keep_tokens, SINK_TOKENS + OBSERVED_TOKENS)


def can_observe(model: Any, cache: Any) -> bool:
    """Whether a model's queries can be had in the way of Llama, Qwen, Mistral and their like."""
    layers = decoder_layers(model)
    attentions = [getattr(layer, "self_attn", None) for layer in layers]
    return (
        len(attentions) == len(cache.layers) > 0
        and all(hasattr(a, "q_proj") and hasattr(a, "head_dim") for a in attentions)
        and hasattr(_module_of(attentions[0]), "apply_rotary_pos_emb")
        and all(isinstance(layer, PlainLayer) for layer in cache.layers)
    )


@contextmanager
def observed_queries(model: Any) -> Iterator[list[torch.Tensor]]:
    """The queries of the model calls inside, layer by layer, each (1, heads, tokens, width)."""
    found: list[torch.Tensor] = []

    def look(module: Any, arguments: Any, options: dict[str, Any]) -> None:
        states = options["hidden_states"] if "hidden_states" in options else arguments[0]
        found.append(_queries(module, states, options["position_embeddings"]))

    hooks = [
        layer.self_attn.register_forward_pre_hook(look, with_kwargs=True)
        for layer in decoder_layers(model)
    ]
    try:
        yield found
    finally:
        for hook in hooks:
            hook.remove()


@torch.inference_mode()
def keep_important(
    model: Any, cache: Any, queries: Sequence[torch.Tensor], keep_tokens: int
) -> None:
    """Let each layer keep `keep_tokens` tokens a head: the votes' best, and the voters.

    `queries` are those of the last tokens in the cache, as `observed_queries` gives them.
    """
    for layer, asked in zip(cache.layers, queries, strict=True):
        keys, values = layer.contents(model.dtype)
        chosen = important(asked, keys, keep_tokens)[..., None].expand(-1, -1, -1, keys.shape[-1])
        replace_all(layer, keys.gather(2, chosen), values.gather(2, chosen))


def important(queries: torch.Tensor, keys: torch.Tensor, keep_tokens: int) -> torch.Tensor:
    """Which tokens to keep, in order: shape (1, key heads, keep_tokens).

    `queries` (1, heads, voters, width) are those of the last `voters` keys of `keys` (1, key
    heads, tokens, width). The first tokens are kept as well: attention rests on them.
    """
    voters, tokens = queries.shape[2], keys.shape[2]
    votes = _votes(queries, keys)[..., : tokens - voters]
    pooled = torch.nn.functional.avg_pool1d(
        votes, POOLED_TOKENS, stride=1, padding=POOLED_TOKENS // 2, count_include_pad=False
    )
    pooled[..., :SINK_TOKENS] = float("inf")
    best = pooled.topk(keep_tokens - voters, dim=-1).indices.sort(dim=-1).values
    last = torch.arange(tokens - voters, tokens, device=keys.device)
    return torch.cat((best, last.expand(*best.shape[:2], -1)), dim=-1)


def _votes(queries: torch.Tensor, keys: torch.Tensor) -> torch.Tensor:
    """Attention that each key gets from all voters of its group: (1, key heads, tokens)."""
    batch, heads, voters, width = queries.shape
    key_heads, tokens = keys.shape[1:3]
    grouped = queries.reshape(batch, key_heads, (heads // key_heads) * voters, width).float()
    scores = grouped @ keys.float().transpose(2, 3) * width**-0.5
    scores = scores.reshape(batch, key_heads, -1, voters, tokens)
    later = torch.ones(voters, tokens, dtype=torch.bool, device=keys.device)
    scores.masked_fill_(later.triu(tokens - voters + 1), float("-inf"))
    return scores.softmax(dim=-1).sum(dim=(2, 3))


def _queries(
    module: Any, states: torch.Tensor, position_embeddings: tuple[torch.Tensor, torch.Tensor]
) -> torch.Tensor:
    """What an attention layer asks with, computed once more as it does itself."""
    queries = module.q_proj(states).view(*states.shape[:-1], -1, module.head_dim)
    if (norm := getattr(module, "q_norm", None)) is not None:
        queries = norm(queries)
    queries = queries.transpose(1, 2)
    turned: torch.Tensor = _module_of(module).apply_rotary_pos_emb(
        queries, queries, *position_embeddings
    )[0]
    return turned


def _module_of(part: Any) -> Any:
    return sys.modules[type(part).__module__]
