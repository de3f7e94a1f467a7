"""Replies in OpenAI's shape: whole, as chunks of a stream, and the field of our own. Pure."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from typing import Any

from chatbot.interchange import citation_record, trace_record
from chatbot.messages import Finish, Notice, Turn, Usage
from chatbot.records import storable, to_plain

DONE = b"data: [DONE]\n\n"
ALIVE = b": the reply is on its way\n\n"
"""A comment of the event stream; clients pass over it."""
_REASONS: dict[Finish, str] = {"length": "length", "memory": "length"}


@dataclass(frozen=True, slots=True)
class Begun:
    """What is known of a reply before its first word. `conversation_id` "": it is not stored."""

    conversation_id: str = ""
    notices: tuple[Notice, ...] = ()


@dataclass(slots=True)
class Clock:
    """Where the time of a request went, in seconds."""

    started_s: float = field(default_factory=time.perf_counter)
    queued_at_s: float | None = None
    queue_s: float = 0.0

    def queued(self) -> None:
        """The reply waits in line."""
        self.queued_at_s = self.queued_at_s or time.perf_counter()

    def at_the_engine(self) -> None:
        """The engine begins."""
        if self.queued_at_s is not None:
            self.queue_s += time.perf_counter() - self.queued_at_s
            self.queued_at_s = None

    def record(self, usage: Usage | None) -> dict[str, float]:
        """`own_s` is what neither the engine nor the line before it took."""
        usage = usage or Usage()
        total_s = time.perf_counter() - self.started_s
        own_s = total_s - self.queue_s - usage.prefill_s - usage.decode_s
        seconds = {
            "total_s": total_s,
            "queue_s": self.queue_s,
            "prefill_s": usage.prefill_s,
            "decode_s": usage.decode_s,
            "own_s": max(own_s, 0.0),
        }
        return {name: round(value, 4) for name, value in seconds.items()}


@dataclass(frozen=True, slots=True)
class Head:
    """What all chunks of a reply, and the reply as a whole, begin with."""

    id: str
    model: str
    created: int = field(default_factory=lambda: int(time.time()))

    def record(self, kind: str, choices: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
        return {
            "id": self.id,
            "object": kind,
            "created": self.created,
            "model": self.model,
            "system_fingerprint": None,
            "choices": choices,
            **more,
        }

    def chunk(
        self, delta: dict[str, Any], finish: str | None = None, **more: Any
    ) -> dict[str, Any]:
        """One chunk of a stream."""
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return self.record("chat.completion.chunk", [choice], **more)

    def whole(self, turn: Turn, own: dict[str, Any]) -> dict[str, Any]:
        """A reply that is not streamed."""
        message: dict[str, Any] = {
            "role": "assistant",
            "content": storable(turn.reply),
            "refusal": None,
            "annotations": [],
        }
        choice = {
            "index": 0,
            "message": message,
            "logprobs": None,
            "finish_reason": finish_reason(turn),
        }
        usage = usage_record(turn.usage)
        return self.record("chat.completion", [choice], usage=usage, chatbot=own)


def finish_reason(turn: Turn) -> str:
    """OpenAI's word for how a reply ended; `chatbot.finish` has ours."""
    return _REASONS.get(turn.finish, "stop")


def usage_record(usage: Usage | None) -> dict[str, Any]:
    """Tokens of a reply; those that the engine did not have to read again are `cached_tokens`."""
    usage = usage or Usage()
    return {
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "total_tokens": usage.prompt_tokens + usage.completion_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cached_tokens, "audio_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": 0, "audio_tokens": 0},
    }


def own_record(turn: Turn, begun: Begun, clock: Clock, *, wants_trace: bool) -> dict[str, Any]:
    """The field `chatbot` of a reply."""
    best = turn.best_sentence
    notices = (*begun.notices, *turn.notices)
    record = {
        "conversation_id": begun.conversation_id or None,
        "turn_id": turn.id if begun.conversation_id else None,
        "finish": turn.finish,
        "notices": [_notice_record(notice) for notice in notices],
        "citations": [citation_record(citation) for citation in turn.citations],
        "unsupported": [storable(sentence) for sentence in turn.unsupported],
        "best_sentence": citation_record(best) if best else None,
        "timings": clock.record(turn.usage),
    }
    if wants_trace:
        record["trace"] = trace_record(turn.trace) if turn.trace else None
    return record


def event(record: dict[str, Any]) -> bytes:
    """One event of a stream."""
    return b"data: " + as_json(record) + b"\n\n"


def as_json(record: object) -> bytes:
    """JSON in UTF-8 on one line."""
    return json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode("utf-8")


def _notice_record(notice: Notice) -> dict[str, Any]:
    return {"code": notice.code, "text": storable(notice.text), "values": to_plain(notice.values)}
