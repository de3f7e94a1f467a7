"""One turn, from the question to the stored reply: the one place that knows the order of things.

Knows no model and no page: an `Engine` makes the reply, and whoever iterates `reply` shows it.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from chatbot.attachments import attach_text, attachment_name
from chatbot.budget import ContextBudget
from chatbot.chat_events import ChatEvent, ContextReady, NoticeEvent, Queued, TurnDone
from chatbot.citing import cite
from chatbot.engine.base import Engine, SamplingParams, TextDelta
from chatbot.errors import ChatbotError, EngineError, InputError, StoreError
from chatbot.fold_job import FoldJob
from chatbot.folding import Folding
from chatbot.messages import Conversation, Notice, PromptTrace, Turn
from chatbot.prompting import PromptBuilder
from chatbot.reply_queue import ReplyQueue
from chatbot.reply_run import ReplyRun
from chatbot.settings import Settings
from chatbot.store import Store
from retrieval.pipeline import Library

log = logging.getLogger(__name__)

__all__ = [
    "Chat",
    "ChatEvent",
    "ContextReady",
    "NoticeEvent",
    "Queued",
    "TextDelta",
    "TurnDone",
    "before_turn",
    "window_tokens",
]

DEMO_WINDOW_TOKENS = 2048
"""A small model on a CPU reads some 600 tokens a second: a longer window only makes it slow."""
MAX_WINDOW_TOKENS = 8192
QUEUE_POLL_S = 0.2
RETRY_TEMPERATURE, RETRY_TOP_P = 0.7, 0.9


class Chat:
    """Answers questions in conversations. Safe to use from many threads.

    One reply at a time runs in a conversation, and one at the engine; the others wait in line.
    """

    def __init__(
        self, *, settings: Settings, store: Store, engine: Engine, library: Library | None = None
    ) -> None:
        self._settings = settings
        self._store = store
        self._engine = engine
        self._library = library
        self._queue = ReplyQueue()
        self._lock = threading.Lock()
        self._running: dict[str, threading.Event] = {}
        self._unsaved: list[tuple[str, Turn]] = []
        self._builder: PromptBuilder | None = None
        job = FoldJob(
            settings,
            store,
            engine,
            builder=lambda: self.builder,
            window=lambda: window_tokens(settings, engine),
        )
        self._folding = Folding(self._queue, job)

    def reply(
        self,
        conversation_id: str,
        text: str,
        *,
        stop: threading.Event | None = None,
        sampling: SamplingParams | None = None,
    ) -> Iterator[ChatEvent]:
        """Answer `text`; the events end with one `TurnDone`, also after a stop or a failure.

        Closing the iterator stops the reply and stores what was there. Raises InputError before
        anything is stored: an empty question, a conversation that is being answered already or
        is unknown, or parts that do not fit the window.
        """
        return self._reply(conversation_id, text, None, stop, sampling)

    def retry(
        self,
        conversation_id: str,
        *,
        stop: threading.Event | None = None,
        sampling: SamplingParams | None = None,
    ) -> Iterator[ChatEvent]:
        """Answer the last question again; its old turn is replaced.

        A reply that had come to its end is drawn anew with some chance in it, since greedy
        decoding would only say the same again.
        """
        conversation = self._store.load(conversation_id)
        if not conversation.turns:
            raise InputError("There is no question to answer again; type one first.")
        last = conversation.turns[-1]
        if sampling is None and last.finish in ("stop", "length"):
            sampling = self._livelier()
        return self._reply(conversation_id, last.question, last.id, stop, sampling)

    def edit(
        self,
        conversation_id: str,
        turn_id: str,
        text: str,
        *,
        stop: threading.Event | None = None,
    ) -> Iterator[ChatEvent]:
        """Ask `text` in place of an earlier question; that turn and all later ones are dropped."""
        return self._reply(conversation_id, text, turn_id, stop, None)

    def context(self, conversation_id: str, text: str) -> PromptTrace:
        """What a reply to `text` would see; calls no model and stores nothing."""
        conversation = self._store.load(conversation_id)
        return self.builder.build(conversation, text, self.budget()).trace

    def stop(self, conversation_id: str) -> None:
        """Stop the running reply of a conversation, if there is one."""
        with self._lock:
            event = self._running.get(conversation_id)
        if event is not None:
            event.set()

    def is_running(self, conversation_id: str) -> bool:
        with self._lock:
            return conversation_id in self._running

    def forget(self, conversation_id: str) -> None:
        """Stop and drop all that is kept in memory about a conversation that was deleted."""
        self.stop(conversation_id)
        self._folding.cancel(conversation_id)
        if self._builder is not None:
            self._builder.forget(conversation_id)
        self._engine.forget(conversation_id)

    def wait_for_folds(self, timeout_s: float | None = None) -> bool:
        """Wait until no summary is being made. False when the time is up first."""
        return self._folding.wait(timeout_s)

    def close(self) -> None:
        """Stop all replies and folds, and store what is left to store. Idempotent."""
        with self._lock:
            for event in self._running.values():
                event.set()
            unsaved = bool(self._unsaved)
        self._folding.close()
        if unsaved:
            self._save_unsaved()

    @property
    def builder(self) -> PromptBuilder:
        """The prompt builder; waits for the tokenizer while a model is loading."""
        tokenizer = self._engine.tokenizer
        with self._lock:
            if self._builder is None or self._builder.encoder.tokenizer.name != tokenizer.name:
                self._builder = PromptBuilder(tokenizer, self._settings, self._library)
            return self._builder

    def budget(self) -> ContextBudget:
        """The budget of the window in use."""
        return self.builder.budget(window_tokens(self._settings, self._engine))

    def _reply(
        self,
        conversation_id: str,
        text: str,
        replacing: str | None,
        stop: threading.Event | None,
        sampling: SamplingParams | None,
    ) -> Iterator[ChatEvent]:
        if not text.strip():
            raise InputError("The question is empty; type one first.")
        stop = stop or threading.Event()
        with self._only_reply(conversation_id, stop):
            self._save_unsaved()
            self._folding.cancel(conversation_id)
            conversation, notices = self._prepare(conversation_id, text, replacing)
            budget = self.budget()
            prompt = self.builder.build(conversation, text, budget)
            prompt = replace(
                prompt, trace=replace(prompt.trace, notices=(*notices, *prompt.trace.notices))
            )
            turn = self._store.begin_turn(conversation_id, text, replacing=replacing)
            run = ReplyRun(turn, prompt)
            try:
                yield from self._run(conversation_id, run, stop, self._params(sampling, budget))
            except Exception as error:
                # A fault of ours: the turn is kept and says so, the error goes on to whoever asked.
                run.fail(EngineError(f"The reply failed by a fault in the program: {error!r}."))
                raise
            finally:
                if not run.stored:
                    self._save(conversation_id, run)
        if run.turn.finish in ("stop", "length"):
            self._folding.schedule(conversation_id)

    def _prepare(
        self, conversation_id: str, text: str, replacing: str | None
    ) -> tuple[Conversation, tuple[Notice, ...]]:
        """The conversation as the prompt sees it: before the turns to be replaced; a message that
        does not fit is attached as a document."""
        conversation = before_turn(self._store.load(conversation_id), replacing)
        if self._library is None or self.builder.fits(conversation, text, self.budget()):
            return conversation, ()
        name = attachment_name(text)
        report = attach_text(self._library, text, name)
        if report.document_id is None:
            return conversation, (Notice("attach_failed", report.message),)
        ids = tuple(dict.fromkeys((*conversation.document_ids, report.document_id)))
        self._store.set_documents(conversation_id, ids)
        sentence = f"The message is attached as the document {name!r} and searched."
        notice = Notice("question_attached", sentence, {"document": name})
        return replace(conversation, document_ids=ids), (notice,)

    @contextmanager
    def _only_reply(self, conversation_id: str, stop: threading.Event) -> Iterator[None]:
        with self._lock:
            if conversation_id in self._running:
                raise InputError("This conversation is still being answered; wait or stop it.")
            self._running[conversation_id] = stop
        try:
            yield
        finally:
            with self._lock:
                del self._running[conversation_id]

    def _run(
        self, conversation_id: str, run: ReplyRun, stop: threading.Event, params: SamplingParams
    ) -> Iterator[ChatEvent]:
        for notice in run.prompt.trace.notices:
            yield NoticeEvent(notice)
        with self._queue.ticket() as ticket:
            self._folding.give_way()
            shown = 0
            while not ticket.wait(QUEUE_POLL_S) and not stop.is_set():
                if ticket.position != shown:
                    shown = ticket.position
                    yield Queued(shown)
            yield ContextReady(run.prompt.trace)
            yield from self._generate(conversation_id, run, stop, params)
        self._save(conversation_id, run)
        yield TurnDone(run.turn)

    def _generate(
        self, conversation_id: str, run: ReplyRun, stop: threading.Event, params: SamplingParams
    ) -> Iterator[ChatEvent]:
        if stop.is_set():
            return
        events = self._engine.generate(
            run.prompt.token_ids, params, conversation_id=conversation_id, stop=stop
        )
        try:
            for event in events:
                run.take(event)
                if isinstance(event, TextDelta):
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

    def _save(self, conversation_id: str, run: ReplyRun) -> None:
        run.stored = True
        run.turn = run.result(self._engine.tokenizer.name)
        if run.turn.reply and run.prompt.passages and self._library is not None:
            run.turn = cite(run.turn, run.prompt.passages, self._library.pages)
        try:
            self._store.finish_turn(conversation_id, run.turn)
        except StoreError as error:
            sentence = f"The reply could not be stored yet and is kept until it can: {error}"
            run.turn = run.with_notice(Notice("not_stored", sentence))
            with self._lock:
                self._unsaved.append((conversation_id, run.turn))

    def _save_unsaved(self) -> None:
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

    def _params(self, sampling: SamplingParams | None, budget: ContextBudget) -> SamplingParams:
        return replace(sampling or self._sampling(), max_tokens=budget.reply_tokens)

    def _sampling(self) -> SamplingParams:
        s = self._settings
        return SamplingParams(
            temperature=s.temperature,
            top_p=s.top_p,
            repetition_penalty=s.repetition_penalty,
            seed=s.seed,
            stop=s.stop,
        )

    def _livelier(self) -> SamplingParams:
        usual = self._sampling()
        if usual.temperature > 0:
            return usual
        return replace(usual, temperature=RETRY_TEMPERATURE, top_p=RETRY_TOP_P)


def before_turn(conversation: Conversation, turn_id: str | None) -> Conversation:
    """The conversation as it was before a turn; its summary only if it covers no dropped turn."""
    if turn_id is None:
        return conversation
    ids = [turn.id for turn in conversation.turns]
    if turn_id not in ids:
        raise InputError("That turn is no longer in the conversation; reload the page.")
    turns = conversation.turns[: ids.index(turn_id)]
    summary = conversation.summary
    kept = summary if summary and summary.covers <= len(turns) else None
    return replace(conversation, turns=turns, summary=kept)


def window_tokens(settings: Settings, engine: Engine) -> int:
    """The window in use: the setting, or what suits the model. Never above the model's own."""
    info = engine.info
    automatic = DEMO_WINDOW_TOKENS if info.is_demo else MAX_WINDOW_TOKENS
    return min(settings.window_tokens or automatic, info.max_window_tokens)
