"""Who keeps the key/value caches between replies; knows nothing of text or sampling.

A cache belongs to one conversation. It is taken out of the store while a reply uses it, so that
nobody else can read or evict it, and comes back only with the ids that it holds.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, Protocol

from chatbot.engine.kv_layer import cache_bytes, new_cache, truncate
from chatbot.engine.kv_policy import cache_bound, capacity_tokens, reusable_tokens, to_evict
from chatbot.engine.loading import LoadedModel
from chatbot.errors import EngineError


@dataclass(slots=True, eq=False)
class Lease:
    """A cache on loan to one reply, which alone may change it."""

    conversation_id: str | None
    cache: Any
    reused_tokens: int
    """So many tokens at the start of the prompt are in the cache already."""
    reserved_bytes: int = 0
    kept_ids: tuple[int, ...] | None = None
    """Set by `keep`; None drops the cache when the loan ends."""
    is_void: bool = False
    """The conversation was forgotten meanwhile, so nothing of it may come back."""

    def keep(self, token_ids: Sequence[int]) -> None:
        """Let the store have the cache back at the end; it holds exactly `token_ids`."""
        assert self.cache.get_seq_length() == len(token_ids), "the cache holds other tokens"
        self.kept_ids = tuple(token_ids)


@dataclass(frozen=True, slots=True)
class CacheFigures:
    """Bytes of caches now; `by_conversation` has the kept ones, least recently used first."""

    bound_bytes: int
    kept_bytes: int
    lent_bytes: int
    by_conversation: dict[str, int] = field(default_factory=dict)
    evicted: int = 0
    """Caches dropped so far to make room for others."""

    @property
    def total_bytes(self) -> int:
        return self.kept_bytes + self.lent_bytes


class KVStore(Protocol):
    """Lends caches to replies."""

    def lend(
        self, conversation_id: str | None, prompt_ids: Sequence[int], *, total_tokens: int
    ) -> AbstractContextManager[Lease]:
        """A cache for a prompt and its reply, `total_tokens` long together at most.

        None takes an empty cache and keeps nothing. A block that is left without `keep`, as by
        an error, drops the cache.
        """
        ...

    def forget(self, conversation_id: str) -> None:
        """Drop whatever is kept for a conversation, also when it is on loan now."""
        ...

    def clear(self) -> None:
        """Drop everything that is not on loan, as when memory ran out."""
        ...

    def figures(self) -> CacheFigures:
        """What is held now."""
        ...


@dataclass(frozen=True, slots=True)
class _Kept:
    cache: Any
    token_ids: tuple[int, ...]
    n_bytes: int


class PrefixStore:
    """Keeps each conversation's last cache and lends it cut to what the next prompt shares.

    All caches, kept and on loan, take at most `bound_bytes`: a loan reserves what its reply may
    grow to, and the least recently used others are dropped for it. Safe to use from threads.
    """

    def __init__(
        self, make_cache: Callable[[], Any], *, bound_bytes: int, bytes_per_token: int
    ) -> None:
        self._make_cache = make_cache
        self._bound_bytes = bound_bytes
        self._bytes_per_token = bytes_per_token
        self._lock = Lock()
        self._kept: OrderedDict[str, _Kept] = OrderedDict()
        self._lent: set[Lease] = set()
        self._evicted = 0

    @contextmanager
    def lend(
        self, conversation_id: str | None, prompt_ids: Sequence[int], *, total_tokens: int
    ) -> Iterator[Lease]:
        """See `KVStore.lend`. Raises EngineError when replies that run leave no room."""
        lease = self._take(conversation_id, tuple(prompt_ids), total_tokens)
        try:
            yield lease
        finally:
            self._end(lease)

    def forget(self, conversation_id: str) -> None:
        """See `KVStore.forget`."""
        with self._lock:
            self._kept.pop(conversation_id, None)
            for lease in self._lent:
                lease.is_void |= lease.conversation_id == conversation_id

    def clear(self) -> None:
        """See `KVStore.clear`."""
        with self._lock:
            self._kept.clear()

    def figures(self) -> CacheFigures:
        """See `KVStore.figures`."""
        with self._lock:
            sizes = {name: kept.n_bytes for name, kept in self._kept.items()}
            lent = sum(cache_bytes(lease.cache) for lease in self._lent)
            return CacheFigures(
                bound_bytes=self._bound_bytes,
                kept_bytes=sum(sizes.values()),
                lent_bytes=lent,
                by_conversation=sizes,
                evicted=self._evicted,
            )

    def _take(
        self, conversation_id: str | None, prompt_ids: tuple[int, ...], total_tokens: int
    ) -> Lease:
        with self._lock:
            held = self._kept.pop(conversation_id, None) if conversation_id is not None else None
            reused = reusable_tokens(held.token_ids, prompt_ids) if held else 0
            cache = _cut(held.cache, reused) if held and reused else None
            if cache is None:
                held, cache, reused = None, self._make_cache(), 0
            need = max(capacity_tokens(total_tokens) * self._bytes_per_token, cache_bytes(cache))
            self._make_room(need)
            lease = Lease(conversation_id, cache, reused, need)
            self._lent.add(lease)
            return lease

    def _end(self, lease: Lease) -> None:
        with self._lock:
            self._lent.discard(lease)
            name, ids, cache = lease.conversation_id, lease.kept_ids, lease.cache
            lease.cache = None  # an error's traceback may hold the loan for long
            if name is None or not ids or lease.is_void:
                return
            # One conversation, one cache: that of the reply which ended last.
            self._kept.pop(name, None)
            self._kept[name] = _Kept(cache, ids, cache_bytes(cache))

    def _make_room(self, need_bytes: int) -> None:
        room = self._bound_bytes - need_bytes - sum(lease.reserved_bytes for lease in self._lent)
        if room < 0:
            raise EngineError(
                f"This reply may need {need_bytes} bytes of cache and the bound is "
                f"{self._bound_bytes}, shared with the replies that run; wait for them, or raise "
                "kv_cache_bytes."
            )
        sizes = {name: kept.n_bytes for name, kept in self._kept.items()}
        for name in to_evict(sizes, room):
            del self._kept[name]
            self._evicted += 1


def store_for(loaded: LoadedModel) -> PrefixStore:
    """The store for a model, bounded as its settings and plan say."""
    bytes_per_token = loaded.kv_bytes_per_token
    bound = cache_bound(loaded.plan, loaded.kv_cache_bytes, bytes_per_token)
    return PrefixStore(
        lambda: new_cache(loaded.model, loaded.plan.cache),
        bound_bytes=bound.n_bytes,
        bytes_per_token=bytes_per_token,
    )


def _cut(cache: Any, keep_tokens: int) -> Any | None:
    """The cache cut to its first tokens; None for one that cannot be cut back any more."""
    try:
        truncate(cache, keep_tokens)
    except RuntimeError:  # a sliding window that has moved on
        return None
    return cache
