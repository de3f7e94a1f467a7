"""How much each key has asked for, and whether it may ask for more. Knows no route and no file.

Tokens of a day are handed to a keeper now and then, so that a restart does not forget them.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Protocol

from chatbot.api.errors import ApiError
from chatbot.api.keys import Key
from chatbot.errors import StoreError

log = logging.getLogger(__name__)

MINUTE_S = 60.0
KEEP_EVERY_S = 10.0
SETTING = "api_tokens"


class Keeper(Protocol):
    """Where the tokens of a day stay: `chatbot.store.Store`."""

    def get_setting(self, key: str, default: object = None) -> object: ...

    def set_setting(self, key: str, value: object) -> None: ...


@dataclass(slots=True)
class _Account:
    """What one key asks for."""

    requests: deque[float] = field(default_factory=deque)
    running: int = 0


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
        self._day = ""
        self._tokens: Counter[str] = Counter()
        self._unkept: Counter[str] = Counter()
        """Of these, what the keeper does not know yet."""
        self._kept_at_s = now_s()
        self._keeping = threading.Lock()

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
            self._turn_day()
            self._tokens[key.name] += tokens
            self._unkept[key.name] += tokens
            is_due = self._now_s() - self._kept_at_s >= KEEP_EVERY_S
            if is_due:
                self._kept_at_s = self._now_s()
        if is_due:
            self._keep()

    def close(self) -> None:
        """Hand what was counted to the keeper."""
        self._keep()

    def _begin(self, key: Key, is_reply: bool) -> _Account:
        limits = key.limits
        with self._lock:
            self._turn_day()
            account = self._accounts.setdefault(key.name, _Account())
            now_s, used_tokens = self._now_s(), self._tokens[key.name]
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
            if is_reply and limits.tokens_per_day and used_tokens >= limits.tokens_per_day:
                sentence = (
                    f"The {limits.tokens_per_day} tokens of this key for today are used up; it "
                    "goes on tomorrow (UTC)."
                )
                raise ApiError.too_many(sentence, "insufficient_quota", _until_tomorrow_s())
            if limits.requests_per_minute:
                account.requests.append(now_s)
            account.running += is_reply
            return account

    def _turn_day(self) -> None:
        """Begin to count anew when a day is over; what others counted of it is known already."""
        today = self._today()
        if self._day != today:
            self._day = today
            self._unkept.clear()
            self._tokens = self._kept(today)

    def _keep(self) -> None:
        """Add what is new to what is kept: other processes may have added to it.

        Writes to the disk, so it is done beside the lock for which all requests wait.
        """
        with self._keeping:
            with self._lock:
                day, fresh = self._day, self._unkept
                self._unkept = Counter()
            if not fresh:
                return
            try:
                kept = self._kept(day) + fresh
                self._keeper.set_setting(SETTING, {"day": day, "tokens": dict(kept)})
            except StoreError as error:
                log.warning("Tokens of API keys could not be kept yet: %s", error)
                with self._lock:
                    self._unkept += fresh
                return
            with self._lock:
                if self._day == day:
                    self._tokens = kept + self._unkept

    def _kept(self, day: str) -> Counter[str]:
        kept = self._keeper.get_setting(SETTING)
        if isinstance(kept, dict) and kept.get("day") == day:
            return Counter(kept["tokens"])
        return Counter()


def _until_tomorrow_s() -> float:
    now = datetime.now(UTC)
    return 86_400.0 - (now.hour * 3600 + now.minute * 60 + now.second)
