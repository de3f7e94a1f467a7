"""What this process has done since its start, in numbers and in lines of a log, never in texts.

Knows no server and no format. Shared by the chats of all people of the process.
"""

from __future__ import annotations

import bisect
import logging
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from chatbot.errors import ChatbotError
from chatbot.messages import FoldDecision, Turn, Usage

log = logging.getLogger(__name__)

BOUNDS_S = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0)
"""Upper bounds of the intervals in which durations are counted."""
FIELDS = "fields"
"""The attribute of a log record with numbers and ids; its text is the same for all."""


@dataclass(frozen=True, slots=True)
class Durations:
    """How many durations were in which interval; the last one has no upper bound."""

    counts: tuple[int, ...] = (0,) * (len(BOUNDS_S) + 1)
    sum_s: float = 0.0

    def with_one(self, seconds: float) -> Durations:
        place = bisect.bisect_left(BOUNDS_S, seconds)
        counts = (*self.counts[:place], self.counts[place] + 1, *self.counts[place + 1 :])
        return Durations(counts, self.sum_s + seconds)


class Tally:
    """Counts by a name and a label, and durations by a name. Safe to use from many threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: Counter[tuple[str, str]] = Counter()
        self._durations: dict[str, Durations] = {}

    @property
    def counts(self) -> dict[tuple[str, str], int]:
        """Counts by (name, label); the label is "" where there is only one."""
        with self._lock:
            return dict(self._counts)

    @property
    def durations(self) -> dict[str, Durations]:
        with self._lock:
            return dict(self._durations)

    def turn(
        self, turn: Turn, *, conversation_id: str, waited_s: float, first_token_s: float | None
    ) -> None:
        """A reply has ended, however it did. Seconds count from when it was asked for."""
        usage = turn.usage or Usage()
        with self._lock:
            self._counts["turns", turn.finish] += 1
            self._counts["tokens", "prompt"] += usage.prompt_tokens
            self._counts["tokens", "cached"] += usage.cached_tokens
            self._counts["tokens", "completion"] += usage.completion_tokens
            for step in usage.ladder:
                self._counts["ladder_steps", step] += 1
            self._time("wait", waited_s)
            if first_token_s is not None:
                self._time("first_token", first_token_s)
            self._time("prefill", usage.prefill_s)
            self._time("decode", usage.decode_s)
        fields = {
            "conversation": conversation_id,
            "turn": turn.id,
            "finish": turn.finish,
            "prompt_tokens": usage.prompt_tokens,
            "cached_tokens": usage.cached_tokens,
            "completion_tokens": usage.completion_tokens,
            "waited_s": round(waited_s, 3),
            "first_token_s": None if first_token_s is None else round(first_token_s, 3),
            "ladder": list(usage.ladder),
            "notices": [notice.code for notice in turn.notices],
        }
        log.info("A reply has ended.", extra={FIELDS: fields})

    def fold(self, conversation_id: str, decision: FoldDecision) -> None:
        """A summary was tried."""
        outcome = (decision.origin or "none") if decision.accepted else "refused"
        with self._lock:
            self._counts["folds", outcome] += 1
        fields = {"conversation": conversation_id, "covers": decision.covers, "outcome": outcome}
        log.info("A summary was tried.", extra={FIELDS: fields})

    @contextmanager
    def refusals(self) -> Iterator[None]:
        """Count it when what is done in the block is refused."""
        try:
            yield
        except ChatbotError as error:
            kind = type(error).__name__
            with self._lock:
                self._counts["refusals", kind] += 1
            log.info("A question was refused.", extra={FIELDS: {"kind": kind}})
            raise

    def request(self, area: str, status: int) -> None:
        """The server has begun to answer a request with this status."""
        with self._lock:
            self._counts["requests", f"{area} {status}"] += 1

    def _time(self, name: str, seconds: float) -> None:
        self._durations[name] = self._durations.get(name, Durations()).with_one(max(seconds, 0.0))
