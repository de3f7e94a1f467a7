"""TransformersEngine: a model on this machine makes replies, one at a time.

Knows token ids in and events out; knows nothing of conversations beyond the name of a cache.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Generator, Iterator, Sequence
from dataclasses import replace
from threading import Event
from typing import Protocol

import torch

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
from chatbot.engine.decode import Reader, StopGate, Stopped
from chatbot.engine.failures import failed, is_out_of_memory, out_of_memory
from chatbot.engine.fair_lock import FairLock
from chatbot.engine.kv_store import KVStore, store_for
from chatbot.engine.loading import LoadedModel, info_of, load_files, load_model
from chatbot.engine.memory_meter import MemoryMeter, weights_in_memory
from chatbot.engine.reply_state import ReplyState
from chatbot.engine.sampling import TokenChooser
from chatbot.engine.text_stream import TextStream
from chatbot.engine.tokenizers import load_tokenizer
from chatbot.errors import EngineError, InputError, OutOfMemoryError
from chatbot.messages import Finish, MemoryFigures, Usage
from chatbot.settings import Settings


class LoadReport(Protocol):
    """Who is told how the load goes, and given the tokenizer as soon as it is there."""

    def __call__(self, message: str, progress: float | None = None) -> None: ...

    def offer_tokenizer(self, tokenizer: ChatTokenizer) -> None: ...


def load_engine(settings: Settings, report: LoadReport) -> TransformersEngine:
    """Find, check and load the model of the settings. Raises ModelError with one sentence."""
    files, plan = load_files(settings, report)
    tokenizer = load_tokenizer(files.folder)
    report.offer_tokenizer(tokenizer)
    return TransformersEngine(load_model(settings, files, plan, report), tokenizer)


class TransformersEngine:
    """See `Engine`. The lock is held from the first event to the end of the iterator."""

    def __init__(
        self, loaded: LoadedModel, tokenizer: ChatTokenizer, store: KVStore | None = None
    ) -> None:
        self._loaded: LoadedModel | None = loaded
        self._tokenizer = tokenizer
        self._stop_ids = tokenizer.chat_format.stop_ids | frozenset(loaded.end_ids)
        self._store = store or store_for(loaded)
        self._gate = StopGate(loaded.model)
        self._lock = FairLock()
        self._info = info_of(loaded)
        parts = (*loaded.model.parameters(), *loaded.model.buffers())
        self._meter = MemoryMeter(weights_in_memory(parts), on_cuda=loaded.device == "cuda")

    @property
    def info(self) -> EngineInfo:
        """What the engine is; `details` has the bytes of caches as they are now."""
        kv = self._store.figures()
        live = {
            "kv_bytes_bound": kv.bound_bytes,
            "kv_bytes": kv.total_bytes,
            "kv_bytes_by_conversation": kv.by_conversation,
            "kv_evicted": kv.evicted,
        }
        return replace(self._info, details={**self._info.details, **live})

    @property
    def tokenizer(self) -> ChatTokenizer:
        return self._tokenizer

    @property
    def status(self) -> EngineStatus:
        if self._loaded is None:
            return EngineStatus("failed", "The engine is closed.")
        return EngineStatus("ready", f"{self._info.model} is ready.", 1.0)

    def generate(
        self,
        prompt_ids: Sequence[int],
        params: SamplingParams,
        *,
        conversation_id: str | None = None,
        stop: Event | None = None,
        ladder: tuple[str, ...] | None = None,
    ) -> Iterator[EngineEvent]:
        """See `Engine.generate`."""
        prompt = tuple(prompt_ids)
        self._check(prompt, params)
        stop = stop or Event()
        if not self._lock.acquire(stop):
            yield Finished("cancelled", "", (), Usage(prompt_tokens=len(prompt)))
            return
        try:
            stream = TextStream(self._tokenizer, params.stop)
            reply = ReplyState(prompt, params, stream, stop.is_set)
            self._gate.watch(reply.stopped)
            self._meter.begin(self._store.figures().total_bytes)
            yield from self._guarded(reply, conversation_id)
        finally:
            self._meter.end()
            self._gate.unwatch()
            self._lock.release()

    def next_token_gap(self, token_ids: Sequence[int]) -> float:
        """How far the likeliest next token is before the second, in nats, read without a cache.

        Where it is tiny, two right computations may choose differently.
        """
        self._lock.acquire()
        try:
            if self._loaded is None:
                raise EngineError("The engine is closed.")
            with self._store.lend(None, token_ids, total_tokens=len(token_ids)) as lease:
                reader = Reader(self._loaded.model, lease.cache, ())
                pieces = reader.prefill(token_ids, piece_tokens=self._loaded.piece_tokens)
                *_, (_, logits) = pieces
                best, second = logits.float().topk(2).values.tolist()
                return float(best - second)
        finally:
            self._lock.release()

    def forget(self, conversation_id: str) -> None:
        """Drop whatever is cached for a conversation."""
        self._store.forget(conversation_id)

    def memory(self) -> MemoryFigures:
        """See `Engine.memory`; caches on loan are counted in all, not by conversation."""
        kv = self._store.figures()
        return self._meter.figures(kv.total_bytes, kv.bound_bytes, kv.by_conversation)

    def close(self) -> None:
        """Free the model once the reply in the making has ended. Idempotent."""
        self._lock.acquire()
        try:
            self._loaded = None
            self._store.clear()
            _release_memory()
        finally:
            self._lock.release()

    def _check(self, prompt: tuple[int, ...], params: SamplingParams) -> None:
        window = self._info.max_window_tokens
        if not prompt:
            raise InputError("The prompt is empty; give at least one token.")
        if params.max_tokens < 1:
            raise InputError("A reply needs at least one token; raise max_tokens.")
        excess = len(prompt) + params.max_tokens - window
        if excess > 0:
            message = (
                f"The prompt ({len(prompt)} tokens) and the reply ({params.max_tokens}) exceed "
                f"the window of {window} by {excess}; shorten the prompt or the reply."
            )
            raise InputError(message)

    def _guarded(self, reply: ReplyState, conversation_id: str | None) -> Iterator[EngineEvent]:
        """Make the reply; turn failures of the model into EngineErrors after freeing all."""
        failure: str | None = None
        try:
            yield from self._reply(reply, conversation_id)
        except (MemoryError, RuntimeError) as error:
            if not is_out_of_memory(error):
                raise EngineError(failed(error)) from error
            # The traceback holds the tensors, so memory comes back only after this block.
            failure = out_of_memory(len(reply.prompt_ids), reply.completion_tokens)
        if failure is not None:
            self._store.clear()
            _release_memory()
            raise OutOfMemoryError(failure)

    def _reply(self, reply: ReplyState, conversation_id: str | None) -> Iterator[EngineEvent]:
        if self._loaded is None:
            raise EngineError("The engine is closed.")
        total_tokens = len(reply.prompt_ids) + reply.params.max_tokens
        # An error leaves the block without keeping, so no cache that is in doubt is used again.
        with self._store.lend(
            conversation_id, reply.prompt_ids, total_tokens=total_tokens
        ) as lease:
            reader = Reader(
                self._loaded.model, lease.cache, reply.prompt_ids[: lease.reused_tokens]
            )
            reply.cached_tokens = lease.reused_tokens
            finish: Finish = "cancelled"
            try:
                logits = yield from self._prefill(reader, reply, self._loaded.piece_tokens)
                finish = yield from self._decode(reader, reply, logits)
            except Stopped:
                pass
            except GeneratorExit:
                lease.keep(reader.token_ids)
                raise
            lease.keep(reader.token_ids)
            if rest := reply.stream.finish():
                yield TextDelta(rest)
        usage = replace(reply.usage(), memory=self.memory())
        yield Finished(finish, reply.stream.text, reply.stream.token_ids, usage)

    def _prefill(
        self, reader: Reader, reply: ReplyState, piece_tokens: int
    ) -> Generator[EngineEvent, None, torch.Tensor]:
        total = len(reply.prompt_ids)
        for done, logits in reader.prefill(reply.prompt_ids, piece_tokens=piece_tokens):
            if done == total:
                reply.prefill_s = time.perf_counter() - reply.started_s
            yield Prefilled(done, total, reply.cached_tokens)
            if done == total:
                return logits
            if reply.stopped():
                raise Stopped
        raise AssertionError("a prompt without a last token")

    def _decode(
        self, reader: Reader, reply: ReplyState, logits: torch.Tensor
    ) -> Generator[EngineEvent, None, Finish]:
        # The penalty counts the reply's own tokens only: one on the prompt's would keep the model
        # from saying what the passages say (measured: benchmarks/demo_answers).
        chooser = TokenChooser(reply.params, (), logits.device)
        while not reply.stopped():
            token = chooser.choose(logits)
            if token in self._stop_ids:
                return "stop"
            reply.completion_tokens += 1
            if text := reply.stream.push(token):
                yield TextDelta(text)
            if reply.stream.stopped:
                return "stop"
            if reply.completion_tokens == reply.params.max_tokens:
                return "length"
            logits = reader.read((token,))
        return "cancelled"


def _release_memory() -> None:
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
