"""TransformersEngine: a model on this machine makes replies, one at a time.

Knows token ids in and events out; knows nothing of conversations beyond the name of a cache.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field
from threading import Event
from typing import Any, Protocol

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
from chatbot.engine.kv_store import KVStore, NoReuse
from chatbot.engine.loading import LoadedModel, info_of, load_files, load_model
from chatbot.engine.sampling import TokenChooser
from chatbot.engine.text_stream import TextStream
from chatbot.engine.tokenizers import load_tokenizer
from chatbot.errors import EngineError, InputError, OutOfMemoryError
from chatbot.messages import Finish, Usage
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


@dataclass(slots=True)
class _Reply:
    """One reply in the making: what it was asked, and what it has so far."""

    prompt_ids: tuple[int, ...]
    params: SamplingParams
    stream: TextStream
    stopped: Callable[[], bool]
    started_s: float = field(default_factory=time.perf_counter)
    prefill_s: float | None = None
    """None while the prompt is being read."""
    cached_tokens: int = 0
    completion_tokens: int = 0

    def usage(self) -> Usage:
        """Tokens and seconds until now."""
        elapsed_s = time.perf_counter() - self.started_s
        prefill_s = elapsed_s if self.prefill_s is None else self.prefill_s
        return Usage(
            prompt_tokens=len(self.prompt_ids),
            cached_tokens=self.cached_tokens,
            completion_tokens=self.completion_tokens,
            prefill_s=prefill_s,
            decode_s=elapsed_s - prefill_s,
        )


class TransformersEngine:
    """See `Engine`. The lock is held from the first event to the end of the iterator."""

    def __init__(
        self, loaded: LoadedModel, tokenizer: ChatTokenizer, store: KVStore | None = None
    ) -> None:
        self._loaded: LoadedModel | None = loaded
        self._tokenizer = tokenizer
        self._stop_ids = tokenizer.chat_format.stop_ids | frozenset(loaded.end_ids)
        self._store = store or NoReuse(lambda: new_cache(loaded.model))
        self._gate = StopGate(loaded.model)
        self._lock = FairLock()
        self._info = info_of(loaded)

    @property
    def info(self) -> EngineInfo:
        return self._info

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
            reply = _Reply(prompt, params, stream, stop.is_set)
            self._gate.watch(reply.stopped)
            yield from self._guarded(reply, conversation_id)
        finally:
            self._gate.unwatch()
            self._lock.release()

    def forget(self, conversation_id: str) -> None:
        """Drop whatever is cached for a conversation."""
        self._store.forget(conversation_id)

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

    def _guarded(self, reply: _Reply, conversation_id: str | None) -> Iterator[EngineEvent]:
        """Make the reply; turn failures of the model into EngineErrors after freeing all."""
        failure: str | None = None
        try:
            yield from self._reply(reply, conversation_id)
        except (MemoryError, RuntimeError) as error:
            if not is_out_of_memory(error):
                self._drop(conversation_id)
                raise EngineError(failed(error)) from error
            # The traceback holds the tensors, so memory comes back only after this block.
            failure = out_of_memory(len(reply.prompt_ids), reply.completion_tokens)
        except EngineError:
            self._drop(conversation_id)
            raise
        if failure is not None:
            self._store.clear()
            _release_memory()
            raise OutOfMemoryError(failure)

    def _reply(self, reply: _Reply, conversation_id: str | None) -> Iterator[EngineEvent]:
        if self._loaded is None:
            raise EngineError("The engine is closed.")
        cache, reused = self._store.take_cache(conversation_id, reply.prompt_ids)
        reply.cached_tokens = reused
        reader = Reader(self._loaded.model, cache, reply.prompt_ids[:reused])
        finish: Finish = "cancelled"
        try:
            logits = yield from self._prefill(reader, reply, self._loaded.piece_tokens)
            finish = yield from self._decode(reader, reply, logits)
        except Stopped:
            pass
        if rest := reply.stream.finish():
            yield TextDelta(rest)
        self._store.give_back(conversation_id, reader.cache, reader.token_ids)
        yield Finished(finish, reply.stream.text, reply.stream.token_ids, reply.usage())

    def _prefill(
        self, reader: Reader, reply: _Reply, piece_tokens: int
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
        self, reader: Reader, reply: _Reply, logits: torch.Tensor
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

    def _drop(self, conversation_id: str | None) -> None:
        if conversation_id is not None:
            self._store.forget(conversation_id)


def new_cache(model: Any) -> Any:
    """An empty cache of the kind that the model's layers need."""
    from transformers import DynamicCache

    return DynamicCache(config=model.config)


def _release_memory() -> None:
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
