"""Who keeps the key/value caches between replies; knows nothing of text or sampling.

A cache belongs to one conversation. It is taken out of the store while a reply uses it, so that
nobody else can read or evict it, and comes back only with the ids that it holds.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import Any

from chatbot.engine.kv_cache import cache_bytes, fit, truncate
from chatbot.engine.kv_idle import AsTheyAre, IdleForm, Resting
from chatbot.engine.kv_lease import Lease
from chatbot.engine.kv_policy import (
    CachePolicy,
    capacity_tokens,
    reusable_tokens,
    room_for_chat,
    to_evict,
    tokens_to_reserve,
)
from chatbot.engine.kv_promise import CacheFigures
from chatbot.errors import EngineError

NO_LIMIT_TOKENS = 1 << 40


@dataclass(frozen=True, slots=True)
class _Kept:
    cache: Any
    token_ids: tuple[int, ...]
    n_bytes: int
    is_exact: bool = True
    resting: Resting = field(default_factory=Resting)


class PrefixStore:
    """Keeps each conversation's last cache and lends it cut to what the next prompt shares.

    All caches, kept and on loan, take at most `bound_bytes`: a loan reserves what its reply may
    grow to, and for it the least recently used others are made smaller if `idle` can, or dropped.
    Where even then there is too little room, a loan is for fewer tokens than asked for, if
    `policy` says so; at most for `window_tokens`. Safe to use from threads.
    """

    def __init__(
        self,
        make_cache: Callable[[], Any],
        *,
        bound_bytes: int,
        bytes_per_token: int,
        policy: CachePolicy | None = None,
        idle: IdleForm | None = None,
        window_tokens: int = NO_LIMIT_TOKENS,
    ) -> None:
        self._make_cache = make_cache
        self._bound_bytes = bound_bytes
        self._bytes_per_token = bytes_per_token
        self._policy = policy or CachePolicy()
        self._idle = idle or AsTheyAre()
        self._window_tokens = window_tokens
        self._lock = Lock()
        self._kept: OrderedDict[str, _Kept] = OrderedDict()
        self._lent: set[Lease] = set()
        self._evicted = 0

    @contextmanager
    def lend(
        self,
        conversation_id: str | None,
        prompt_ids: Sequence[int],
        *,
        total_tokens: int,
        with_cache: bool = True,
    ) -> Iterator[Lease]:
        """See `KVStore.lend`. Raises EngineError when replies that run leave no room."""
        if with_cache:
            lease = self._take(conversation_id, tuple(prompt_ids), total_tokens)
        else:
            lease = Lease(conversation_id, None, total_tokens=total_tokens, policy=self._policy)
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
            here, moved = self._sizes(at_home=True), self._sizes(at_home=False)
            lent = sum(cache_bytes(lease.cache) for lease in self._lent)
            return CacheFigures(
                bound_bytes=self._bound_bytes,
                kept_bytes=sum(here.values()),
                lent_bytes=lent,
                by_conversation={name: kept.n_bytes for name, kept in self._kept.items()},
                evicted=self._evicted,
                moved_bytes=sum(moved.values()),
            )

    def _take(
        self, conversation_id: str | None, prompt_ids: tuple[int, ...], total_tokens: int
    ) -> Lease:
        with self._lock:
            held = self._kept.pop(conversation_id, None) if conversation_id is not None else None
            reused = reusable_tokens(held.token_ids, prompt_ids) if held else 0
            if held and not (reused and _cut(held.cache, reused)):
                held, reused = None, 0
            # The chat in use keeps the room that it had, so that memory is the same from turn to
            # turn; but not at the cost of other caches. One that rested has no room to spare.
            if held and not held.resting.is_changed and not self._has_room(cache_bytes(held.cache)):
                fit(held.cache)
            least = cache_bytes(held.cache) if held and not held.resting.is_changed else 0
            limit = self._make_room(len(prompt_ids), total_tokens, least, conversation_id)
            if held and held.resting.is_changed:
                self._idle.wake(held.cache)
            roomy = limit if conversation_id is None else self._roomy(limit)
            lease = Lease(
                conversation_id,
                held.cache if held else self._make_cache(),
                prompt_ids[:reused],
                prompt_tokens=len(prompt_ids),
                total_tokens=total_tokens,
                limit_tokens=limit,
                room_tokens=roomy,
                window_tokens=self._window_tokens,
                reserved_bytes=max(capacity_tokens(roomy) * self._bytes_per_token, least),
                is_exact=held.is_exact if held else True,
                policy=self._policy,
            )
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
            self._kept[name] = _Kept(cache, ids, cache_bytes(cache), lease.is_exact)

    def _make_room(
        self, prompt_tokens: int, total_tokens: int, least_bytes: int, name: str | None
    ) -> int:
        """The tokens that a new loan may hold; all others then leave it the room for them."""
        free = self._bound_bytes - sum(lease.reserved_bytes for lease in self._lent)
        limit = tokens_to_reserve(
            prompt_tokens,
            total_tokens,
            room_tokens=free // self._bytes_per_token,
            window_tokens=self._window_tokens,
        )
        if limit < (1 if self._policy.in_reply == "sink" else total_tokens) or least_bytes > free:
            raise EngineError(
                f"This reply may need {capacity_tokens(total_tokens) * self._bytes_per_token} "
                f"bytes of cache and the bound is {self._bound_bytes}, shared with the replies "
                "that run; wait for them, or raise kv_cache_bytes."
            )
        room = free - max(capacity_tokens(limit) * self._bytes_per_token, least_bytes)
        self._rest_others(room, all_of_them=name is not None)
        self._evict(self._sizes(at_home=True), room)
        self._evict(self._sizes(at_home=False), self._bound_bytes)
        return limit

    def _roomy(self, limit_tokens: int) -> int:
        """Room to grow as well, if the bound holds that without taking from other caches.

        What a chat has from its first turns on need not be found later, and the memory of the
        process is the same from turn to turn.
        """
        if self._window_tokens == NO_LIMIT_TOKENS:
            return limit_tokens
        room = room_for_chat(limit_tokens, self._window_tokens)
        fits = self._has_room(capacity_tokens(room) * self._bytes_per_token)
        return room if fits else limit_tokens

    def _rest_others(self, room_bytes: int, *, all_of_them: bool) -> None:
        """Another chat is in use now, or there is too little room for all: see `IdleForm`."""
        for name, kept in list(self._kept.items()):
            pressed = sum(self._sizes(at_home=True).values()) > room_bytes
            if kept.resting.is_changed or not (all_of_them or pressed):
                continue
            fit(kept.cache)
            resting = self._idle.rest(kept.cache)
            self._kept[name] = replace(
                kept,
                resting=resting,
                n_bytes=cache_bytes(kept.cache),
                is_exact=kept.is_exact and resting.is_exact,
            )

    def _has_room(self, n_bytes: int) -> bool:
        """Whether so many bytes fit beside all that is kept and promised."""
        taken = sum(self._sizes(at_home=True).values()) + sum(x.reserved_bytes for x in self._lent)
        return taken + n_bytes <= self._bound_bytes

    def _sizes(self, *, at_home: bool) -> dict[str, int]:
        return {n: k.n_bytes for n, k in self._kept.items() if k.resting.is_home == at_home}

    def _evict(self, sizes: dict[str, int], room_bytes: int) -> None:
        for name in to_evict(sizes, room_bytes):
            del self._kept[name]
            self._evicted += 1


def _cut(cache: Any, keep_tokens: int) -> bool:
    """Cut a cache to its first tokens; False for one that cannot be cut back any more."""
    try:
        truncate(cache, keep_tokens)
    except RuntimeError:  # a sliding window that has moved on
        return False
    return True
