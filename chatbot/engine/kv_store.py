"""Who keeps the key/value cache between replies; knows nothing of text or sampling."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol


class KVStore(Protocol):
    """Lends caches to replies. A lent cache belongs to the borrower until it is given back."""

    def take_cache(self, conversation_id: str | None, prompt_ids: Sequence[int]) -> tuple[Any, int]:
        """A cache to fill, and how many tokens at the start of `prompt_ids` it already holds.

        At most `len(prompt_ids) - 1`, since the last token must be read to get logits. The store
        keeps no reference, so a reply that fails drops its cache by forgetting it.
        """
        ...

    def give_back(self, conversation_id: str | None, cache: Any, token_ids: Sequence[int]) -> None:
        """Keep `cache`, which holds exactly `token_ids`, for the conversation's next reply."""
        ...

    def forget(self, conversation_id: str) -> None:
        """Drop whatever is kept for a conversation."""
        ...

    def clear(self) -> None:
        """Drop everything, as when memory ran out."""
        ...


class NoReuse:
    """Every reply starts from an empty cache, made by `make_cache`."""

    def __init__(self, make_cache: Callable[[], Any]) -> None:
        self._make_cache = make_cache

    def take_cache(self, conversation_id: str | None, prompt_ids: Sequence[int]) -> tuple[Any, int]:
        """A new, empty cache."""
        return self._make_cache(), 0

    def give_back(self, conversation_id: str | None, cache: Any, token_ids: Sequence[int]) -> None:
        """Keep nothing."""

    def forget(self, conversation_id: str) -> None:
        """Nothing is kept."""

    def clear(self) -> None:
        """Nothing is kept."""
