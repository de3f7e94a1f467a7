"""One piece of a known text through a model with a cache; knows ids and tensors, no text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch


@torch.inference_mode()
def read_scored(
    model: Any, cache: Any, token_ids: Sequence[int], following_ids: Sequence[int]
) -> tuple[float, list[int]]:
    """Read tokens into the cache: the surprise of those that follow each, in nats, added up, and
    the likeliest in place of each of them."""
    ids = torch.tensor([list(token_ids)], device=model.device)
    logits = model(input_ids=ids, cache=cache, use_cache=True).logits[0].float()
    wanted = torch.tensor(list(following_ids), device=model.device)
    surprise = torch.nn.functional.cross_entropy(logits, wanted, reduction="sum")
    return float(surprise), logits.argmax(dim=-1).tolist()
