"""An engine that is still being loaded, in the background; knows nothing of how it is loaded."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from threading import Condition, Event, Thread

from chatbot.engine.again import Again
from chatbot.engine.base import (
    ChatTokenizer,
    Engine,
    EngineEvent,
    EngineInfo,
    EngineStatus,
    Finished,
    SamplingParams,
)
from chatbot.engine.memory_meter import idle_figures
from chatbot.engine.reach import Reach, reach_of
from chatbot.errors import ChatbotError, EngineError, ModelError
from chatbot.messages import MemoryFigures, Usage

_POLL_S = 0.02


class LoadHandle:
    """What a factory is given to report with. Call it: `handle("Reading weights.", 0.4)`."""

    def __init__(self, owner: LazyEngine) -> None:
        self._owner = owner

    def __call__(self, message: str, progress: float | None = None) -> None:
        """Report one sentence and, if known, a progress in [0, 1]."""
        self._owner._report(self, message, progress)

    def offer_tokenizer(self, tokenizer: ChatTokenizer) -> None:
        """Let documents be chunked and prompts counted before the weights are there."""
        self._owner._take_tokenizer(self, tokenizer)

    @property
    def cancelled(self) -> bool:
        """Whether the engine was closed meanwhile; a factory may give up with any error."""
        return self._owner._handle is not self


EngineFactory = Callable[[LoadHandle], Engine]


class LazyEngine:
    """Loads an engine in a background thread and stands for it from the first moment.

    `generate`, `tokenizer` and `info` wait for what they need. A failed load is raised to each of
    them as ModelError with the load's sentence, until `reload` succeeds or, with `again`, a later
    try of its own. Meanwhile nobody waits for those: the status stays "failed".
    """

    def __init__(
        self,
        factory: EngineFactory,
        *,
        message: str = "The model is loading.",
        again: Again | None = None,
    ) -> None:
        self._factory = factory
        self._again = again
        self._first_message = message
        self._changed = Condition()
        self._handle: LoadHandle | None = None
        self._engine: Engine | None = None
        self._tokenizer: ChatTokenizer | None = None
        self._error: Exception | None = None
        self._closed = False
        self._status = EngineStatus("loading", message)
        with self._changed:
            self._start()

    @property
    def status(self) -> EngineStatus:
        with self._changed:
            engine = self._engine
            return self._status if engine is None else engine.status

    @property
    def info(self) -> EngineInfo:
        """Waits for the load. Raises ModelError when it failed, EngineError when closed."""
        return self._wait_for_engine().info

    @property
    def tokenizer(self) -> ChatTokenizer:
        """Waits for the tokenizer only, if the factory offers it early. Raises as `info`."""
        with self._changed:
            self._changed.wait_for(lambda: self._tokenizer is not None or self._settled())
            if self._tokenizer is not None and self._engine is None and not self._closed:
                return self._tokenizer
        return self._wait_for_engine().tokenizer

    def generate(
        self,
        prompt_ids: Sequence[int],
        params: SamplingParams,
        *,
        conversation_id: str | None = None,
        stop: Event | None = None,
        ladder: tuple[str, ...] | None = None,
    ) -> Iterator[EngineEvent]:
        """See `Engine.generate`. Also waits for the load, and `stop` ends that wait too."""
        while not self._wait(_POLL_S):
            if stop is not None and stop.is_set():
                yield Finished("cancelled", "", (), Usage(prompt_tokens=len(prompt_ids)))
                return
        engine = self._wait_for_engine()
        yield from engine.generate(
            prompt_ids, params, conversation_id=conversation_id, stop=stop, ladder=ladder
        )

    def forget(self, conversation_id: str) -> None:
        """Drop whatever is cached for a conversation; nothing is while the engine loads."""
        with self._changed:
            engine = self._engine
        if engine is not None:
            engine.forget(conversation_id)

    def memory(self) -> MemoryFigures:
        """See `Engine.memory`; of the process alone while nothing is loaded."""
        with self._changed:
            engine = self._engine
        return idle_figures() if engine is None else engine.memory()

    def reach(self) -> Reach:
        """See `Distant.reach`; nobody else is needed while nothing is loaded."""
        with self._changed:
            engine = self._engine
        return "ok" if engine is None else reach_of(engine)

    def reload(self) -> None:
        """Try a failed load again at once; does nothing while loading or when ready."""
        with self._changed:
            if self._error is not None and not self._closed:
                self._error = None
                self._start()

    def wait(self, timeout_s: float | None = None) -> EngineStatus:
        """Wait until the load has ended, at most `timeout_s` seconds; the status then."""
        self._wait(timeout_s)
        return self.status

    def close(self) -> None:
        """Free the engine; one that is still loading is freed as soon as it is there."""
        with self._changed:
            self._closed = True
            self._handle = None
            engine, self._engine = self._engine, None
            self._status = EngineStatus("failed", "The engine is closed.")
            self._changed.notify_all()
        if engine is not None:
            engine.close()

    def _start(self) -> None:
        self._handle = LoadHandle(self)
        self._status = EngineStatus("loading", self._first_message)
        # A daemon, so that a long download does not keep the program from ending.
        Thread(target=self._load, args=(self._handle,), name="engine-load", daemon=True).start()

    def _load(self, handle: LoadHandle) -> None:
        waits = self._again.waits() if self._again is not None else iter(())
        while self._is_worth_another_try(handle):
            wait_s = next(waits, None)
            if wait_s is None or not self._pause(handle, wait_s):
                return

    def _is_worth_another_try(self, handle: LoadHandle) -> bool:
        """Try to load; whether that failed in a way that may pass."""
        try:
            engine = self._factory(handle)
        except Exception as error:  # kept, and raised to everyone who asks for the engine
            again = self._again is not None and self._again.may_help(error)
            return self._settle(handle, error=error, again=again) and again
        if not self._settle(handle, engine=engine):
            engine.close()
        return False

    def _pause(self, handle: LoadHandle, wait_s: float) -> bool:
        """Wait for the next try; False when nobody wants it any more."""
        with self._changed:
            return not self._changed.wait_for(lambda: self._handle is not handle, wait_s)

    def _settle(
        self,
        handle: LoadHandle,
        *,
        engine: Engine | None = None,
        error: Exception | None = None,
        again: bool = False,
    ) -> bool:
        """Take over the result of a load; False when nobody wants it any more."""
        with self._changed:
            if self._handle is not handle:
                return False
            self._engine, self._error = engine, error
            if error is not None:
                self._status = EngineStatus("failed", _sentence(error), again=again)
            self._changed.notify_all()
            return True

    def _settled(self) -> bool:
        return self._closed or self._engine is not None or self._error is not None

    def _wait(self, timeout_s: float | None = None) -> bool:
        with self._changed:
            return self._changed.wait_for(self._settled, timeout_s)

    def _wait_for_engine(self) -> Engine:
        with self._changed:
            self._changed.wait_for(self._settled)
            if self._closed:
                raise EngineError("The engine is closed.")
            if self._error is not None:
                raise ModelError(_sentence(self._error)) from self._error
            assert self._engine is not None
            return self._engine

    def _report(self, handle: LoadHandle, message: str, progress: float | None) -> None:
        with self._changed:
            if self._handle is handle and not self._settled():
                self._status = EngineStatus("loading", message, progress)

    def _take_tokenizer(self, handle: LoadHandle, tokenizer: ChatTokenizer) -> None:
        with self._changed:
            if self._handle is handle:
                self._tokenizer = tokenizer
                self._changed.notify_all()


def _sentence(error: Exception) -> str:
    if isinstance(error, ChatbotError):
        return str(error)
    return f"The model cannot be loaded ({type(error).__name__}: {error})."
