"""One turn, from the question to the stored reply: the one place that knows the order of things.

Knows no model and no page: an `Engine` makes the reply, and whoever iterates `reply` shows it.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator

from chatbot.answering import Answering
from chatbot.attachments import drop_unused
from chatbot.busy import Busy
from chatbot.chat_by_hand import ChatByHand
from chatbot.chat_events import ChatEvent, ContextReady, NoticeEvent, Queued, TurnDone
from chatbot.chat_in_passing import ChatInPassing, Nowhere
from chatbot.chat_taking import Asked, ChatTaking
from chatbot.engine.base import Engine, SamplingParams, TextDelta
from chatbot.engine.exchange import in_use
from chatbot.errors import EngineError, InputError
from chatbot.fold_job import FoldJob
from chatbot.folding import Folding
from chatbot.hands import Hands
from chatbot.prompting import PromptBuilder
from chatbot.read_ahead import ReadAhead
from chatbot.recall_vectors import RecallVectors
from chatbot.reply_queue import ReplyQueue
from chatbot.settings import Settings
from chatbot.store import Store
from chatbot.store_changes import NOTHING, Changes
from chatbot.windows import livelier, usual_sampling, window_tokens
from retrieval.pipeline import Library

__all__ = [
    "Chat", "ChatEvent", "ContextReady", "NoticeEvent", "Queued", "TextDelta", "TurnDone",
    "window_tokens",
]  # fmt: skip

STOP_WAIT_S = 30.0
"""How long deleting a conversation waits for its reply to end: a step of a large model on a CPU."""


class Chat(ChatByHand, ChatTaking, ChatInPassing):
    """Answers questions in conversations. Safe to use from many threads.

    One reply at a time runs in a conversation, and as many at the engine as the settings say; the
    others wait in line.
    """

    def __init__(
        self,
        *,
        settings: Settings,
        store: Store,
        engine: Engine,
        library: Library | None = None,
        vectors: RecallVectors | None = None,
        queue: ReplyQueue | None = None,
    ) -> None:
        """`queue` is shared by the chats of several people at one engine."""
        self._settings = settings
        self._vectors = vectors
        self._store = store
        self._engine = engine
        self._library = library
        self._lock = threading.Lock()
        self._busy = Busy()
        self._builder: PromptBuilder | None = None
        queue = queue or ReplyQueue(settings.max_concurrent_replies)
        self.queue = queue
        self._answering = Answering(store, engine, library, queue=queue)
        self._passing = Answering(Nowhere(), engine, library, queue=queue)
        job = FoldJob(
            settings,
            store,
            engine,
            builder=lambda: self.builder,
            window=lambda: window_tokens(self._settings, engine),
            embedder=None if library is None else library.embedder,
            tally=queue.tally,
        )
        self._fold_job = job
        self._folding = Folding(queue, job)
        self._ahead = ReadAhead(self._read)
        self._hands = Hands(
            store,
            engine,
            self._folding,
            self._busy,
            builder=lambda: self.builder,
            cap_tokens=settings.summary_tokens,
        )

    def reply(
        self,
        conversation_id: str,
        text: str,
        *,
        stop: threading.Event | None = None,
        sampling: SamplingParams | None = None,
        max_tokens: int | None = None,
        changes: Changes = NOTHING,
    ) -> Iterator[ChatEvent]:
        """Answer `text`; the events end with one `TurnDone`, also after a stop or a failure.

        The reply has `max_tokens` at most, or what the settings say. Closing the iterator stops
        the reply and stores what was there. `changes` are stored with the question. Raises
        InputError with nothing changed: an empty question, a conversation that is being answered
        already or is unknown, or parts that do not fit the window.
        """
        asked = Asked(conversation_id, text, changes=changes)
        return self._reply(asked, stop, sampling, max_tokens)

    def retry(
        self,
        conversation_id: str,
        *,
        stop: threading.Event | None = None,
        sampling: SamplingParams | None = None,
        max_tokens: int | None = None,
        changes: Changes = NOTHING,
    ) -> Iterator[ChatEvent]:
        """Answer the last question again; the old reply is kept as a version of the turn.

        A reply that had come to its end is drawn anew with some chance in it, since greedy
        decoding would only say the same again.
        """
        newest = self._store.last_turns(conversation_id, 1)
        if not newest:
            raise InputError("There is no question to answer again; type one first.")
        last = newest[-1]
        if sampling is None and last.finish in ("stop", "length"):
            sampling = livelier(usual_sampling(self._settings))
        asked = Asked(conversation_id, last.question, last.id, changes)
        return self._reply(asked, stop, sampling, max_tokens)

    def edit(
        self,
        conversation_id: str,
        turn_id: str,
        text: str,
        *,
        stop: threading.Event | None = None,
    ) -> Iterator[ChatEvent]:
        """Ask `text` in place of an earlier question.

        That turn and all later ones are no longer part of the chat, nor is what was remembered
        of them; they are kept as a version, see `switch_version`.
        """
        return self._reply(Asked(conversation_id, text, turn_id), stop, None)

    def stop(self, conversation_id: str) -> None:
        """Stop the running reply of a conversation, if there is one."""
        self._busy.stop(conversation_id)

    def is_running(self, conversation_id: str) -> bool:
        return self._busy.is_answering(conversation_id)

    def forget(self, conversation_id: str) -> None:
        """Stop, wait for the end, and drop all that is kept in memory about a conversation."""
        self.stop(conversation_id)
        self._busy.wait(conversation_id, STOP_WAIT_S)
        self._folding.cancel(conversation_id)
        self._answering.unsaved.forget(conversation_id)
        if self._builder is not None:
            self._builder.forget(conversation_id)
        elif self._vectors is not None:
            self._vectors.forget(conversation_id)
        self._engine.forget(conversation_id)

    def delete(self, conversation_id: str) -> None:
        """Delete a conversation, its branches, and documents that only its messages became."""
        self.forget(conversation_id)
        attached = self._store.attached_in(conversation_id)
        self._store.delete(conversation_id)
        drop_unused(self._library, self._store, attached)

    def wait_for_folds(self, timeout_s: float | None = None) -> bool:
        """Wait until no summary is being made. False when the time is up first."""
        return self._folding.wait(timeout_s)

    def close(self) -> None:
        """Stop all replies and folds, and store what is left to store. Idempotent."""
        self._busy.stop_all()
        self._folding.close()
        self._ahead.close()
        self._answering.unsaved.close()
        if self._vectors is not None:
            self._vectors.close()

    def _reply(
        self,
        asked: Asked,
        stop: threading.Event | None,
        sampling: SamplingParams | None,
        max_tokens: int | None = None,
    ) -> Iterator[ChatEvent]:
        if not asked.text.strip():
            raise InputError("The question is empty; type one first.")
        stop = stop or threading.Event()
        conversation_id = asked.conversation_id
        with (
            self.queue.tally.refusals(),
            self._busy.reply(conversation_id, stop),
            in_use(self._engine, stop),
        ):
            self._answering.unsaved.save()
            budget = self.budget(max_tokens)
            run = self._take(asked, budget)
            params = self._drawn(sampling, budget, max_tokens)
            try:
                yield from self._answering.run(
                    conversation_id, run, stop, params, folding=self._folding
                )
            except Exception as error:
                # A fault of ours: the turn is kept and says so, the error goes on to whoever asked.
                run.fail(EngineError(f"The reply failed by a fault in the program: {error!r}."))
                raise
            finally:
                if not run.stored:
                    self._answering.save(conversation_id, run)
        if run.turn.finish in ("stop", "length"):
            self._folding.schedule(conversation_id)
