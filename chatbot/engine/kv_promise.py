"""What a store of caches promises, what it tells, and one that keeps nothing; holds no cache."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import Protocol

from chatbot.engine.kv_lease import Lease


@dataclass(frozen=True, slots=True)
class CacheFigures:
    """Bytes of caches now; `by_conversation` has the kept ones, least recently used first."""

    bound_bytes: int
    kept_bytes: int
    lent_bytes: int
    by_conversation: dict[str, int] = field(default_factory=dict)
    evicted: int = 0
    """Caches dropped so far to make room for others."""
    moved_bytes: int = 0
    """Kept in another memory than the model's; under a bound of the same size of their own."""

    @property
    def total_bytes(self) -> int:
        return self.kept_bytes + self.lent_bytes


class KVStore(Protocol):
    """Lends caches to replies."""

    def lend(
        self,
        conversation_id: str | None,
        prompt_ids: Sequence[int],
        *,
        total_tokens: int,
        with_cache: bool = True,
    ) -> AbstractContextManager[Lease]:
        """A cache for a prompt and its reply, `total_tokens` long together at most.

        None takes an empty cache and keeps nothing. A block that is left without `keep`, as by
        an error, drops the cache. `with_cache` False lends none, and leaves what is kept.
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


class NoCaches:
    """A store that keeps and lends nothing: every reply reads its prompt again for each token."""

    @contextmanager
    def lend(
        self,
        conversation_id: str | None,
        prompt_ids: Sequence[int],
        *,
        total_tokens: int,
        with_cache: bool = True,
    ) -> Iterator[Lease]:
        """See `KVStore.lend`."""
        yield Lease(conversation_id, None, total_tokens=total_tokens)

    def forget(self, conversation_id: str) -> None:
        """See `KVStore.forget`."""

    def clear(self) -> None:
        """See `KVStore.clear`."""

    def figures(self) -> CacheFigures:
        """See `KVStore.figures`."""
        return CacheFigures(0, 0, 0)
