"""One reply of a model on this machine: read, write token by token, get along with little memory.

Knows token ids, a cache on loan and a model; knows nothing of who waits for the engine.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator
from dataclasses import replace

import torch

from chatbot.engine.base import EngineEvent, Finished, Prefilled, TextDelta
from chatbot.engine.decode import Stopped, TokenReader
from chatbot.engine.failures import failed, is_out_of_memory
from chatbot.engine.kv_cache import new_cache, reserve, truncate
from chatbot.engine.kv_lease import Lease
from chatbot.engine.ladder import (
    CALLERS_STEPS,
    LadderState,
    Recipe,
    Step,
    next_step,
    recipe,
    step_notice,
    steps_of,
    stopped_notice,
)
from chatbot.engine.local_samples import SHORT_TOKENS, draw, samples_of, settle
from chatbot.engine.reply_state import ReplyState
from chatbot.engine.sampling import TokenChooser
from chatbot.engine.workshop import Workshop, can_quantize, release_memory
from chatbot.errors import EngineError, OutOfMemoryError, SmallerPromptError
from chatbot.messages import Finish, Notice

LOOK_EVERY_TOKENS = 16
"""How often a growing reply looks at free memory; a look takes some tens of microseconds."""


class LocalReply:
    """Makes one reply; used once."""

    def __init__(
        self,
        shop: Workshop,
        reply: ReplyState,
        conversation_id: str | None,
        ladder: tuple[str, ...] | None,
    ) -> None:
        self._shop = shop
        self._reply = reply
        self._conversation_id = conversation_id
        self._caller_shrinks = ladder is not None
        self._taken: list[str] = list(ladder or ())
        self._cached = True
        """Whether the attempt that runs has a cache."""

    def events(self) -> Iterator[EngineEvent]:
        """See `Engine.generate`."""
        loaded = self._shop.loaded
        while True:
            way = recipe(self._taken, piece_tokens=loaded.piece_tokens, cache=loaded.plan.cache)
            finish = yield from self._guarded(way)
            # Only here, outside of every `except`, has the traceback let go of the tensors.
            if finish is not None:
                yield self._finished(finish)
                return
            step = next_step(self._state(way))
            sentence = self._shop.shortage(self._reply)
            self._recover(step)
            if step is not None and step not in CALLERS_STEPS:
                self._taken.append(step)
                self._reply.restart()
                continue
            if self._reply.completion_tokens:
                self._shop.steps_taken["stopped"] += 1
                if rest := self._reply.stream.finish():
                    yield TextDelta(rest)
                yield self._finished("memory", stopped_notice(sentence))
                return
            kind = OutOfMemoryError if step is None else SmallerPromptError
            raise kind(sentence, tuple(self._taken))

    def _guarded(self, way: Recipe) -> Generator[EngineEvent, None, Finish | None]:
        """One attempt; None when memory ran out. Other failures become EngineErrors."""
        try:
            return (yield from self._attempt(way))
        except (MemoryError, RuntimeError) as error:
            if not is_out_of_memory(error):
                raise EngineError(failed(error)) from error
        return None

    def _attempt(self, way: Recipe) -> Generator[EngineEvent, None, Finish | None]:
        shop, reply = self._shop, self._reply
        total_tokens = len(reply.prompt_ids) + reply.params.max_tokens
        # An error leaves the block without keeping, so no cache that is in doubt is used again.
        with shop.store.lend(
            self._conversation_id,
            reply.prompt_ids,
            total_tokens=total_tokens,
            with_cache=way.with_cache,
        ) as lease:
            self._cached = lease.cache is not None
            reader = self._reader(lease, way)
            reply.cached_tokens = lease.reused_tokens
            finish: Finish | None = "cancelled"
            try:
                logits = yield from self._prefill(reader, way.piece_tokens)
                finish = yield from self._answer(reader, logits)
            except Stopped:
                pass
            except GeneratorExit:
                lease.keep(reader.held_ids)
                raise
            except (MemoryError, RuntimeError) as error:
                if not is_out_of_memory(error):
                    raise
                finish = None
            if finish is None:
                self._keep_prefix(lease, reader)
                return None
            lease.keep(reader.held_ids)
            reply.evicted_tokens = reader.dropped_tokens
            reply.notices = (*reply.notices, *reader.notices())
            if rest := reply.stream.finish():
                yield TextDelta(rest)
        return finish

    def _reader(self, lease: Lease, way: Recipe) -> TokenReader:
        loaded = self._shop.loaded
        other = way.with_cache and way.cache != loaded.plan.cache
        if other and lease.cache is not None and not lease.reused_tokens:
            lease.cache = new_cache(loaded.model, way.cache)
            lease.is_exact = False  # a fresh start would have the usual kind
        if lease.cache is not None:
            reserve(lease.cache, self._shop.room_tokens(lease, failed=bool(self._taken)))
        return lease.reader(loaded.model)

    def _keep_prefix(self, lease: Lease, reader: TokenReader) -> None:
        """What was reused is as it was before, whatever went wrong behind it."""
        held = lease.reused_tokens
        if held and reader.held_ids is not None and not self._reply.completion_tokens:
            truncate(lease.cache, held)
            lease.keep(self._reply.prompt_ids[:held])

    def _prefill(
        self, reader: TokenReader, piece_tokens: int
    ) -> Generator[EngineEvent, None, torch.Tensor]:
        shop, reply = self._shop, self._reply
        total = len(reply.prompt_ids)
        pieces = reader.prefill(reply.prompt_ids, piece_tokens=piece_tokens)
        done = reply.cached_tokens
        while done < total:
            # Without a cache there is one piece, of all.
            piece = min(piece_tokens, total - done) if self._cached else total
            shop.watch.before_reading(piece, done, cached=self._cached)
            with shop.turn.call(reply.stopped):
                done, logits = next(pieces)
            if done == total:
                reply.prefill_s = time.perf_counter() - reply.started_s
            yield Prefilled(done, total, reply.cached_tokens)
            if done < total and reply.stopped():
                raise Stopped
        return logits

    def _answer(
        self, reader: TokenReader, logits: torch.Tensor
    ) -> Generator[EngineEvent, None, Finish]:
        """Write token by token; without a cache, a short answer may be settled by a majority."""
        shop, reply, number = self._shop, self._reply, self._shop.loaded.samples
        alone = self._cached or number < 2 or self._conversation_id is None
        # All samples are read at once.
        longest = len(reply.prompt_ids) + SHORT_TOKENS
        if alone or not shop.watch.can_read_again(number * longest):
            return (yield from self._decode(reader, logits))
        samples = samples_of(reply.params, number, reply.stream.fresh, shop.stop_ids, logits.device)
        model, prompt = shop.loaded.model, reply.prompt_ids
        draw(model, prompt, logits, samples, lambda: shop.turn.call(reply.stopped))
        won, notice = settle(samples)
        reply.stream, reply.completion_tokens = won.stream, len(won.ids)
        if won.stream.text:
            yield TextDelta(won.stream.text)
        if notice is not None:
            reply.notices = (notice,)
        if won.finish is not None:
            return won.finish
        with shop.turn.call(reply.stopped):
            logits = reader.read(won.ids)
        return (yield from self._decode(reader, logits, won.chooser))

    def _decode(
        self, reader: TokenReader, logits: torch.Tensor, chooser: TokenChooser | None = None
    ) -> Generator[EngineEvent, None, Finish]:
        shop, reply = self._shop, self._reply
        # The penalty counts the reply's own tokens only: one on the prompt's would keep the model
        # from saying what the passages say (measured: benchmarks/demo_answers).
        chooser = chooser or TokenChooser(reply.params, (), logits.device)
        while not reply.stopped():
            early = reply.completion_tokens < reply.params.min_tokens
            token = chooser.choose(logits, shop.stop_ids if early else ())
            if token in shop.stop_ids:
                return "stop"
            reply.completion_tokens += 1
            if text := reply.stream.push(token):
                yield TextDelta(text)
            if reply.stream.stopped:
                return "stop"
            if reply.completion_tokens == reply.params.max_tokens:
                return "length"
            if reply.completion_tokens % LOOK_EVERY_TOKENS == 0:
                held = len(reply.prompt_ids) + reply.completion_tokens
                shop.watch.before_reading(1, held, cached=self._cached)
            with shop.turn.call(reply.stopped):
                logits = reader.read((token,))
        return "cancelled"

    def _state(self, way: Recipe) -> LadderState:
        reply, kv = self._reply, self._shop.store.figures()
        idle = sum(n for name, n in kv.by_conversation.items() if name != self._conversation_id)
        return LadderState(
            taken=tuple(self._taken),
            began=reply.completion_tokens > 0,
            idle_bytes=idle,
            reused_tokens=reply.cached_tokens,
            new_tokens=len(reply.prompt_ids) - reply.cached_tokens,
            piece_tokens=way.piece_tokens,
            cache=way.cache,
            can_quantize=can_quantize(self._shop.loaded.model),
            can_do_without=True,
            caller_shrinks=self._caller_shrinks,
        )

    def _recover(self, step: Step | None) -> None:
        """Free what the step gives up; with no step left, everything that can be freed."""
        own = self._conversation_id
        store = self._shop.store
        for name in store.figures().by_conversation:
            if name != own or step != "evict_idle":
                store.forget(name)
        if step is not None:
            self._shop.steps_taken[step] += 1
        release_memory()

    def _finished(self, finish: Finish, *notices: Notice) -> Finished:
        stream, taken = self._reply.stream, steps_of(self._taken)
        usage = replace(self._reply.usage(), memory=self._shop.memory(), ladder=taken)
        told = (*map(step_notice, taken), *self._reply.notices, *notices)
        return Finished(finish, stream.text, stream.token_ids, usage, told)
