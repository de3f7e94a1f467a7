"""How much each key has asked for, and whether it may ask for more. Knows no route and no file.

Tokens of a day are handed to a keeper now and then, so that a restart does not forget them.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Protocol

from chatbot.api.errors import ApiError
from chatbot.api.keys import Key

MINUTE_S = 60.0
KEEP_EVERY_S = 10.0


class Keeper(Protocol):
    """Where the tokens of a day stay: `chatbot.store.Store`."""

    def get_setting(self, key: str, default: object = None) -> object: ...

    def set_setting(self, key: str, value: object) -> None: ...


@dataclass(slots=True)
class _Account:
    """What one key did. `unkept_tokens` are those that the keeper does not know yet."""

    requests: deque[float] = field(default_factory=deque)
    running: int = 0
    day: str = ""
    day_tokens: int = 0
    unkept_tokens: int = 0
    kept_at_s: float = 0.0


class Accounts:
    """Counts for all keys. Safe to use from many threads."""

    def __init__(
        self,
        keeper: Keeper,
        *,
        now_s: Callable[[], float] = time.monotonic,
        today: Callable[[], str] = lambda: datetime.now(UTC).date().isoformat(),
    ) -> None:
        self._keeper = keeper
        self._now_s = now_s
        self._today = today
        self._lock = threading.Lock()
        self._accounts: dict[str, _Account] = {}

    @contextmanager
    def request(self, key: Key, *, is_reply: bool) -> Iterator[None]:
        """One request of a key. Raises ApiError (429) where a limit is reached.

        Only what makes a reply counts as parallel and needs tokens left.
        """
        account = self._begin(key, is_reply)
        try:
            yield
        finally:
            if is_reply:
                with self._lock:
                    account.running -= 1

    def spend(self, key: Key, tokens: int) -> None:
        """Count the tokens of a reply, if somebody wants to know."""
        if not key.limits.tokens_per_day:
            return
        with self._lock:
            account = self._account(key)
            account.day_tokens += tokens
            account.unkept_tokens += tokens
            if self._now_s() - account.kept_at_s >= KEEP_EVERY_S:
                self._keep(key.name, account)

    def close(self) -> None:
        """Hand what was counted to the keeper."""
        with self._lock:
            for name, account in self._accounts.items():
                self._keep(name, account)

    def _begin(self, key: Key, is_reply: bool) -> _Account:
        limits = key.limits
        with self._lock:
            account, now_s = self._account(key), self._now_s()
            while account.requests and now_s - account.requests[0] >= MINUTE_S:
                account.requests.popleft()
            if limits.requests_per_minute and len(account.requests) >= limits.requests_per_minute:
                wait_s = MINUTE_S - (now_s - account.requests[0])
                sentence = (
                    f"This key may make {limits.requests_per_minute} requests a minute; wait."
                )
                raise ApiError.too_many(sentence, "rate_limit_exceeded", wait_s)
            if is_reply and limits.parallel and account.running >= limits.parallel:
                sentence = f"This key may make {limits.parallel} requests at a time; wait for them."
                raise ApiError.too_many(sentence, "rate_limit_exceeded", 1.0)
            if is_reply and limits.tokens_per_day and account.day_tokens >= limits.tokens_per_day:
                sentence = (
                    f"The {limits.tokens_per_day} tokens of this key for today are used up; it "
                    "goes on tomorrow (UTC)."
                )
                raise ApiError.too_many(sentence, "insufficient_quota", _until_tomorrow_s())
            if limits.requests_per_minute:
                account.requests.append(now_s)
            account.running += is_reply
            return account

    def _account(self, key: Key) -> _Account:
        account = self._accounts.setdefault(key.name, _Account())
        today = self._today()
        if account.day != today:
            account.day, account.unkept_tokens = today, 0
            account.day_tokens = self._kept(key.name, today) if key.limits.tokens_per_day else 0
            account.kept_at_s = self._now_s()
        return account

    def _keep(self, name: str, account: _Account) -> None:
        """Add what is new to what is kept: other processes may have added to it."""
        account.kept_at_s = self._now_s()
        if account.unkept_tokens:
            account.day_tokens = self._kept(name, account.day) + account.unkept_tokens
            value = {"day": account.day, "tokens": account.day_tokens}
            self._keeper.set_setting(_setting(name), value)
            account.unkept_tokens = 0

    def _kept(self, name: str, day: str) -> int:
        kept = self._keeper.get_setting(_setting(name))
        if isinstance(kept, dict) and kept.get("day") == day and isinstance(kept["tokens"], int):
            return kept["tokens"]
        return 0


def _setting(name: str) -> str:
    return f"api_tokens/{name}"


def _until_tomorrow_s() -> float:
    now = datetime.now(UTC)
    return 86_400.0 - (now.hour * 3600 + now.minute * 60 + now.second)
