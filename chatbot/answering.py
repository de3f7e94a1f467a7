"""One reply: its place in the line, the engine's events, and storing what came of it.

Knows no question and no prompt-making; both are done when a reply begins here.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from typing import Protocol

from chatbot.chat_events import ChatEvent, ContextReady, NoticeEvent, Queued, TurnDone
from chatbot.citing import cite
from chatbot.engine.base import Engine, SamplingParams, TextDelta
from chatbot.errors import ChatbotError, StoreError
from chatbot.folding import Folding
from chatbot.messages import Notice, Turn
from chatbot.reply_queue import ReplyQueue
from chatbot.reply_run import ReplyRun, Timing
from chatbot.store_queries import ConversationInfo
from retrieval.pipeline import Library

log = logging.getLogger(__name__)

QUEUE_POLL_S = 0.2


class TurnKeeper(Protocol):
    """Where replies go when they end: `chatbot.store.Store`, or nowhere."""

    def finish_turn(self, conversation_id: str, turn: Turn) -> None: ...

    def list_conversations(self) -> list[ConversationInfo]: ...


class Answering:
    """Makes replies with an engine and stores them. Safe to use from many threads."""

    def __init__(
        self, store: TurnKeeper, engine: Engine, library: Library | None, *, queue: ReplyQueue
    ) -> None:
        self._store = store
        self._engine = engine
        self._library = library
        self._queue = queue
        self._lock = threading.Lock()
        self._unsaved: list[tuple[str, Turn]] = []

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
            run.turn = run.with_notice(Notice("not_stored", sentence))
            with self._lock:
                self._unsaved.append((conversation_id, run.turn))

    def save_unsaved(self) -> None:
        """Store the replies that could not be stored when they ended."""
        with self._lock:
            waiting, self._unsaved = self._unsaved, []
        for position, (conversation_id, turn) in enumerate(waiting):
            try:
                self._store.finish_turn(conversation_id, turn)
            except StoreError as error:
                if conversation_id in {info.id for info in self._store.list_conversations()}:
                    with self._lock:
                        self._unsaved = waiting[position:] + self._unsaved
                    return
                log.warning("A reply in a chat that was deleted is dropped: %s", error)

    def forget(self, conversation_id: str) -> None:
        """Drop replies of a conversation that wait to be stored: it was deleted."""
        with self._lock:
            self._unsaved = [item for item in self._unsaved if item[0] != conversation_id]

    @property
    def has_unsaved(self) -> bool:
        with self._lock:
            return bool(self._unsaved)

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
