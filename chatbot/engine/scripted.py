"""An engine that replies from a script, for tests, demos and suites; has no model."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator, Sequence
from threading import BoundedSemaphore, Event

from chatbot.engine.base import (
    ChatTokenizer,
    EngineEvent,
    EngineInfo,
    EngineStatus,
    Finished,
    Prefilled,
    SamplingParams,
    TextDelta,
)
from chatbot.engine.memory_meter import idle_figures
from chatbot.engine.script import Script, Scripted, ScriptedCall, ScriptedReply
from chatbot.engine.scripted_tokenizer import ScriptedTokenizer
from chatbot.engine.text_stream import TextStream
from chatbot.errors import EngineError, InputError
from chatbot.messages import Finish, MemoryFigures, Usage

__all__ = ["Script", "Scripted", "ScriptedCall", "ScriptedEngine", "ScriptedReply"]

_POLL_S = 0.005


class ScriptedEngine:
    """Replies from a list, in order, or from a function of the prompt's text and ids.

    An exception in the place of a reply is raised before the first token. Keeps each
    conversation's last ids to report reuse as a real engine does. `calls` records every call.
    """

    def __init__(
        self,
        script: Script = (),
        *,
        window_tokens: int = 4096,
        tokens_per_s: float | None = None,
        tokenizer: ChatTokenizer | None = None,
        name: str = "scripted",
        keeps_cache: bool = False,
        at_once: int = 1,
    ) -> None:
        """`at_once` replies are made at a time; others wait."""
        self._script = script if callable(script) else iter(script)
        self._tokens_per_s = tokens_per_s
        self._tokenizer = tokenizer or ScriptedTokenizer()
        self._info = EngineInfo(
            model=name, max_window_tokens=window_tokens, keeps_cache=keeps_cache
        )
        self._lock = BoundedSemaphore(at_once)
        self._kept: dict[str, tuple[int, ...]] = {}
        self.calls: list[ScriptedCall] = []
        self._closed = False

    @property
    def info(self) -> EngineInfo:
        return self._info

    @property
    def tokenizer(self) -> ChatTokenizer:
        return self._tokenizer

    @property
    def status(self) -> EngineStatus:
        if self._closed:
            return EngineStatus("failed", "The engine is closed.")
        return EngineStatus("ready", "Replies come from a script.", 1.0)

    def generate(
        self,
        prompt_ids: Sequence[int],
        params: SamplingParams,
        *,
        conversation_id: str | None = None,
        stop: Event | None = None,
        ladder: tuple[str, ...] | None = None,
    ) -> Iterator[EngineEvent]:
        """See `Engine.generate`; the lock is held until the iterator ends or is closed."""
        prompt = tuple(prompt_ids)
        self._check(prompt, params)
        stop = stop or Event()
        while not self._lock.acquire(timeout=_POLL_S):
            if stop.is_set():
                yield Finished("cancelled", "", (), Usage(prompt_tokens=len(prompt)))
                return
        try:
            self.calls.append(
                ScriptedCall(prompt, self._shown(prompt), params, conversation_id, ladder)
            )
            yield from self._reply(prompt, params, conversation_id, stop)
        finally:
            self._lock.release()

    def forget(self, conversation_id: str) -> None:
        """Drop what is kept of a conversation."""
        self._kept.pop(conversation_id, None)

    def memory(self) -> MemoryFigures:
        """Made up, but steady: four bytes for each token that is kept."""
        return idle_figures({name: 4 * len(ids) for name, ids in list(self._kept.items())})

    def close(self) -> None:
        """Refuse further calls. Idempotent."""
        self._closed = True
        self._kept.clear()

    def _check(self, prompt: tuple[int, ...], params: SamplingParams) -> None:
        if self._closed:
            raise EngineError("The engine is closed.")
        if not prompt:
            raise InputError("The prompt is empty; give at least one token.")
        if params.max_tokens < 1:
            raise InputError("A reply needs at least one token; raise max_tokens.")
        excess = len(prompt) + params.max_tokens - self._info.max_window_tokens
        if excess > 0:
            raise InputError(
                f"Prompt ({len(prompt)} tokens) and reply ({params.max_tokens}) exceed the window "
                f"of {self._info.max_window_tokens} by {excess}; shorten the prompt or the reply."
            )

    def _reply(
        self,
        prompt: tuple[int, ...],
        params: SamplingParams,
        conversation_id: str | None,
        stop: Event,
    ) -> Iterator[EngineEvent]:
        started = time.perf_counter()
        # As a real engine does, the script goes by what is kept as far as that is used again: a
        # front that is not this prompt's shows in the reply.
        front = self._kept_front(prompt, conversation_id)
        cached_tokens = len(front)
        reply = self._next_reply(front + prompt[cached_tokens:])
        stream = TextStream(self._tokenizer, params.stop)
        finish: Finish = "cancelled"
        read_s = time.perf_counter() - started
        if not stop.is_set():
            yield Prefilled(len(prompt), len(prompt), cached_tokens)
            finish = yield from self._decode(reply, params, stream, stop)
        if rest := stream.finish():
            yield TextDelta(rest)
        if conversation_id is not None:
            self._kept[conversation_id] = prompt + stream.token_ids
        usage = Usage(
            prompt_tokens=len(prompt),
            cached_tokens=cached_tokens,
            completion_tokens=len(stream.token_ids),
            prefill_s=read_s,
            decode_s=time.perf_counter() - started - read_s,
            memory=self.memory(),
        )
        yield Finished(finish, stream.text, stream.token_ids, usage)

    def _next_reply(self, prompt: tuple[int, ...]) -> ScriptedReply:
        if callable(self._script):
            item = self._script(self._shown(prompt), prompt)
        else:
            try:
                item = next(self._script)
            except StopIteration:
                raise EngineError(
                    f"The script has no reply left for call {len(self.calls)}; add one."
                ) from None
        if isinstance(item, Exception):
            raise item
        return ScriptedReply(item) if isinstance(item, str) else item

    def _shown(self, prompt: tuple[int, ...]) -> str:
        if isinstance(self._tokenizer, ScriptedTokenizer):
            return self._tokenizer.show(prompt)
        return self._tokenizer.decode(prompt)

    def _kept_front(self, prompt: tuple[int, ...], conversation_id: str | None) -> tuple[int, ...]:
        """The kept ids that stand in for the front of the prompt; they are the same."""
        kept = self._kept.get(conversation_id, ()) if conversation_id is not None else ()
        same = 0
        for mine, theirs in zip(prompt, kept, strict=False):
            if mine != theirs:
                break
            same += 1
        # A real engine must read at least the last token to have something to go on from.
        return kept[: min(same, len(prompt) - 1)]

    def _decode(
        self, reply: ScriptedReply, params: SamplingParams, stream: TextStream, stop: Event
    ) -> Generator[EngineEvent, None, Finish]:
        rate = reply.tokens_per_s or self._tokens_per_s
        for place, token_id in enumerate(self._ids_with_end(reply)):
            if stop.is_set():
                return "cancelled"
            if place == reply.fail_after_tokens:
                raise reply.error or EngineError("The scripted reply failed.")
            if place == reply.stall_after_tokens:
                stop.wait()
                return "cancelled"
            if place == params.max_tokens:
                return "length"
            if rate:
                stop.wait(1 / rate)
            if token_id is None or token_id in self._tokenizer.chat_format.stop_ids:
                return "stop"
            if text := stream.push(token_id):
                yield TextDelta(text)
            if stream.stopped:
                return "stop"
        raise AssertionError("a reply without an end")

    def _ids_with_end(self, reply: ScriptedReply) -> Iterator[int | None]:
        """The ids of a reply; None is the end token."""
        ids = reply.token_ids
        if ids is None:
            ids = self._tokenizer.encode(reply.text)
        yield from ids
        while ids and not reply.ends_itself:
            yield from ids
        yield None
