"""Which store of caches a loaded model gets; knows the settings' choices, not how they work."""

from __future__ import annotations

from typing import Any

from chatbot.engine.kv_cache import new_cache
from chatbot.engine.kv_idle import AsTheyAre, Elsewhere, IdleForm, InEightBit
from chatbot.engine.kv_policy import cache_bound
from chatbot.engine.kv_promise import KVStore, NoCaches
from chatbot.engine.kv_store import PrefixStore
from chatbot.engine.loading import LoadedModel


def store_for(loaded: LoadedModel) -> KVStore:
    """The store for a model, bounded as its settings and plan say."""
    if not loaded.with_cache:
        return NoCaches()
    bytes_per_token = loaded.kv_bytes_per_token
    bound = cache_bound(loaded.plan, loaded.kv_cache_bytes, bytes_per_token)
    return PrefixStore(
        lambda: new_cache(loaded.model, loaded.plan.cache),
        bound_bytes=bound.n_bytes,
        bytes_per_token=bytes_per_token,
        policy=loaded.cache_policy,
        idle=_idle_form(loaded.model, loaded.cache_policy.idle),
        window_tokens=loaded.window_tokens,
    )


def _idle_form(model: Any, kind: str) -> IdleForm:
    if kind == "int8":
        return InEightBit(model.dtype)
    if kind == "cpu" and model.device.type != "cpu":
        return Elsewhere(model.device)
    return AsTheyAre()  # on a CPU there is no other memory to move to
