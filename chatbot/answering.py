"""One reply: its place in the line, the engine's events, and storing what came of it.

Knows no question and no prompt-making; both are done when a reply begins here.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

from chatbot.chat_events import ChatEvent, ContextReady, NoticeEvent, Queued, TurnDone
from chatbot.citing import cite
from chatbot.engine.base import Engine, SamplingParams, TextDelta
from chatbot.errors import ChatbotError, StoreError
from chatbot.folding import Folding
from chatbot.messages import Notice
from chatbot.reply_queue import ReplyQueue
from chatbot.reply_run import ReplyRun, Timing
from chatbot.unsaved import TurnKeeper, Unsaved
from retrieval.pipeline import Library

QUEUE_POLL_S = 0.2


class Answering:
    """Makes replies with an engine and stores them. Safe to use from many threads."""

    def __init__(
        self, store: TurnKeeper, engine: Engine, library: Library | None, *, queue: ReplyQueue
    ) -> None:
        self._store = store
        self._engine = engine
        self._library = library
        self._queue = queue
        self.unsaved = Unsaved(store)

    def run(
        self,
        conversation_id: str,
        run: ReplyRun,
        stop: threading.Event,
        params: SamplingParams,
        *,
        folding: Folding,
    ) -> Iterator[ChatEvent]:
        """Wait in line, generate, store; the last event says what was stored."""
        timing = run.timing = Timing(time.monotonic())
        for notice in run.prompt.trace.notices:
            yield NoticeEvent(notice)
        with self._queue.ticket() as ticket:
            folding.give_way()
            shown = 0
            while not ticket.wait(QUEUE_POLL_S) and not stop.is_set():
                if ticket.position != shown:
                    shown = ticket.position
                    yield Queued(shown)
            timing.began = time.monotonic()
            yield ContextReady(run.prompt.trace)
            yield from self._generate(conversation_id, run, stop, params)
        self.save(conversation_id, run)
        yield TurnDone(run.turn)

    def save(self, conversation_id: str, run: ReplyRun) -> None:
        """Store what there is of a reply, or keep it until it can be stored."""
        run.stored = True
        run.turn = run.result(self._engine.tokenizer.name, self._engine.memory())
        if run.turn.reply and run.prompt.passages and self._library is not None:
            run.turn = cite(run.turn, run.prompt.passages, self._library.pages)
        waited_s, first_token_s = run.timing.seconds() if run.timing else (0.0, None)
        self._queue.tally.turn(
            run.turn,
            conversation_id=conversation_id,
            waited_s=waited_s,
            first_token_s=first_token_s,
        )
        try:
            self._store.finish_turn(conversation_id, run.turn)
        except StoreError as error:
            sentence = f"The reply could not be stored yet and is kept until it can: {error}"
            # Without the notice, which is no longer true of a reply that is stored.
            self.unsaved.keep(conversation_id, run.turn)
            run.turn = run.with_notice(Notice("not_stored", sentence))

    def _generate(
        self, conversation_id: str, run: ReplyRun, stop: threading.Event, params: SamplingParams
    ) -> Iterator[ChatEvent]:
        if stop.is_set():
            return
        events = run.generate(self._engine, params, conversation_id=conversation_id, stop=stop)
        try:
            for event in events:
                run.take(event)
                if run.timing and isinstance(event, TextDelta):
                    run.timing.first_text()
                if isinstance(event, TextDelta | NoticeEvent | ContextReady):
                    yield event
        except GeneratorExit:
            # The reader has gone. Let the engine end tidily, so that the ids of what was
            # generated are kept with the text.
            stop.set()
            for event in events:
                run.take(event)
            raise
        except ChatbotError as error:
            run.fail(error)
            yield NoticeEvent(run.notices[-1])
