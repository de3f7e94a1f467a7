"""TransformersEngine: a model on this machine makes replies, one or some at a time.

Knows who waits for the model and what is kept; `local_reply` makes one reply.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from threading import Event
from typing import Protocol

from chatbot.engine.base import (
    ChatTokenizer,
    EngineEvent,
    EngineInfo,
    EngineStatus,
    Finished,
    SamplingParams,
)
from chatbot.engine.decode import StopGate
from chatbot.engine.device_memory import Memory, device_memory
from chatbot.engine.fair_lock import FairLock
from chatbot.engine.kv_choice import store_for
from chatbot.engine.kv_policy import LEAST_ROOM_TOKENS
from chatbot.engine.kv_promise import KVStore
from chatbot.engine.loading import LoadedModel, info_of, load_files, load_model
from chatbot.engine.local_reply import LocalReply
from chatbot.engine.memory_meter import MemoryMeter, weights_in_memory
from chatbot.engine.memory_watch import MemoryWatch, Needs
from chatbot.engine.model_turn import ModelTurn, NoGate
from chatbot.engine.process_memory import give_back_freed
from chatbot.engine.reply_state import ReplyState
from chatbot.engine.text_stream import TextStream
from chatbot.engine.tokenizers import load_tokenizer
from chatbot.engine.workshop import Workshop, release_memory
from chatbot.errors import EngineError, InputError
from chatbot.messages import MemoryFigures, Usage
from chatbot.settings import Settings

CLOSE_WAIT_S = 10.0
"""For replies to end once they were told to; a layer or a token takes a fraction of it."""


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
    """See `Engine`. A place is taken from the first event to the end of the iterator."""

    def __init__(
        self,
        loaded: LoadedModel,
        tokenizer: ChatTokenizer,
        store: KVStore | None = None,
        *,
        free: Callable[[], Memory] | None = None,
    ) -> None:
        """`free` measures free memory in place of the model's device."""
        self._loaded: LoadedModel | None = loaded
        self._tokenizer = tokenizer
        self._store = store or store_for(loaded)
        self._places = FairLock(loaded.replies_at_once)
        self._info = info_of(loaded)
        on_cuda = loaded.device == "cuda"
        parts = (*loaded.model.parameters(), *loaded.model.buffers())
        self._meter = MemoryMeter(weights_in_memory(parts), on_cuda=on_cuda)
        self._watch = MemoryWatch(
            Needs(
                loaded.figures, loaded.plan.cache, loaded.model.dtype.itemsize, loaded.piece_tokens
            ),
            free or (lambda: device_memory(on_cuda=on_cuda)),
            full_window_tokens=loaded.window_tokens,
            on_cuda=on_cuda,
        )
        self._steps_taken: Counter[str] = Counter()
        self._closing = Event()
        self._stop_ids = tokenizer.chat_format.stop_ids | frozenset(loaded.end_ids)
        self._turn = ModelTurn(StopGate(loaded.model))

    @property
    def info(self) -> EngineInfo:
        """What the engine is, with the window that memory allows now and the bytes of caches."""
        kv = self._store.figures()
        live = {
            "kv_bytes_bound": kv.bound_bytes,
            "kv_bytes": kv.total_bytes,
            "kv_bytes_by_conversation": kv.by_conversation,
            "kv_evicted": kv.evicted,
            "kv_moved_bytes": kv.moved_bytes,
            "memory_steps": dict(self._steps_taken),
        }
        full = self._info.max_window_tokens
        window = self._watch.window_tokens(kv.kept_bytes)
        return replace(
            self._info,
            max_window_tokens=window,
            full_window_tokens=full if window < full else 0,
            details={**self._info.details, **live},
        )

    @property
    def tokenizer(self) -> ChatTokenizer:
        return self._tokenizer

    @property
    def status(self) -> EngineStatus:
        """Also says when memory is so short that the window has shrunk."""
        if self._loaded is None:
            return EngineStatus("failed", "The engine is closed.")
        info = self.info
        if info.full_window_tokens:
            sentence = (
                f"{info.model} is ready; memory is short, so the window is "
                f"{info.max_window_tokens} of {info.full_window_tokens} tokens for now."
            )
            return EngineStatus("ready", sentence, 1.0)
        return EngineStatus("ready", f"{info.model} is ready.", 1.0)

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
        place = self._places.acquire(stop)
        if place is None:
            yield Finished("cancelled", "", (), Usage(prompt_tokens=len(prompt)))
            return
        try:
            self._meter.begin(self._store.figures().total_bytes)
            stream = TextStream(self._tokenizer, params.stop)
            stopped = _any_set(stop, self._closing)
            reply = ReplyState(prompt, params, stream, stopped)
            yield from LocalReply(self._workshop(), reply, conversation_id, ladder).events()
        finally:
            try:
                self._meter.end()
                if conversation_id is None or params.max_tokens == 1:
                    # A summary's call, or reading ahead: nobody waits, and the C library would
                    # keep what they freed, some tens of MB.
                    give_back_freed()
            finally:
                # Whatever fails before: without its place back, all later replies would wait.
                self._places.release(place)

    def next_token_gap(self, token_ids: Sequence[int]) -> float:
        """How far the likeliest next token is before the second, in nats, read without a cache.

        Where it is tiny, two right computations may choose differently.
        """
        with self._places.held():
            loaded = self._workshop().loaded
            with self._store.lend(None, token_ids, total_tokens=len(token_ids)) as lease:
                reader = lease.reader(loaded.model)
                pieces = reader.prefill(token_ids, piece_tokens=loaded.piece_tokens)
                with self._turn.call(Event().is_set):
                    *_, (_, logits) = pieces
                best, second = logits.float().topk(2).values.tolist()
                return float(best - second)

    def forget(self, conversation_id: str) -> None:
        """Drop whatever is cached for a conversation."""
        self._store.forget(conversation_id)

    def memory(self) -> MemoryFigures:
        """See `Engine.memory`; caches on loan are counted in all, not by conversation."""
        kv = self._store.figures()
        return self._meter.figures(kv.total_bytes, kv.bound_bytes, kv.by_conversation)

    def close(self) -> None:
        """Stop the replies in the making and free the model. Idempotent.

        A reply that nobody reads on would never end, so there is a limit to the wait; its part of
        the model is freed with its iterator.
        """
        self._closing.set()
        place = self._places.acquire(alone=True, timeout_s=CLOSE_WAIT_S)
        self._loaded = None
        self._turn = ModelTurn(NoGate())
        self._store.clear()
        release_memory()
        if place is not None:
            self._places.release(place)

    def _workshop(self) -> Workshop:
        if self._loaded is None:
            raise EngineError("The engine is closed.")
        return Workshop(
            loaded=self._loaded,
            store=self._store,
            turn=self._turn,
            watch=self._watch,
            stop_ids=self._stop_ids,
            memory=self.memory,
            steps_taken=self._steps_taken,
        )

    def _check(self, prompt: tuple[int, ...], params: SamplingParams) -> None:
        window = self._info.max_window_tokens
        if not prompt:
            raise InputError("The prompt is empty; give at least one token.")
        if params.max_tokens < 1:
            raise InputError("A reply needs at least one token; raise max_tokens.")
        excess = len(prompt) + params.max_tokens - window
        goes_on = self._info.replies_outgrow and len(prompt) + LEAST_ROOM_TOKENS <= window
        if excess > 0 and not goes_on:
            message = (
                f"The prompt ({len(prompt)} tokens) and the reply ({params.max_tokens}) exceed "
                f"the window of {window} by {excess}; shorten the prompt or the reply."
            )
            raise InputError(message)


def _any_set(*events: Event) -> Callable[[], bool]:
    return lambda: any(event.is_set() for event in events)
