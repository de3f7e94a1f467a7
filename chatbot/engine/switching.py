"""An engine whose model can be exchanged while the program runs; knows no kind of model.

The files of the new model are got while the old one still answers. Then replies in the making end,
the old model is freed, since two rarely fit, and the new one is loaded. If that fails, the old one
is loaded again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from threading import Condition, Event, Thread

from chatbot.engine.base import (
    ChatTokenizer,
    Engine,
    EngineEvent,
    EngineInfo,
    EngineStatus,
    SamplingParams,
)
from chatbot.engine.cache_folder import Progress
from chatbot.engine.exchange import Phase, Switch
from chatbot.engine.reach import Reach, reach_of
from chatbot.errors import ChatbotError, InputError
from chatbot.messages import MemoryFigures
from chatbot.settings import Settings

_POLL_S = 0.05
Load = Callable[[Settings], Engine]
Prepare = Callable[[Settings, Progress], object]


class SwitchingEngine:
    """Stands for whichever model is in use. All methods may be called from any thread.

    `load` starts to load the model of some settings, in the background, and raises nothing;
    `prepare` gets its files and raises ChatbotError for a model that cannot be had.
    """

    def __init__(self, settings: Settings, *, load: Load, prepare: Prepare) -> None:
        self._load = load
        self._prepare = prepare
        self._settings = settings
        self._changed = Condition()
        self._users = 0
        self._closed = False
        self._switch: Switch | None = None
        self._engine = load(settings)

    @property
    def switch(self) -> Switch | None:
        """The exchange that runs, or else the last one."""
        with self._changed:
            return self._switch

    def switch_to(self, settings: Settings, done: Callable[[Settings | None], None]) -> bool:
        """See `Exchangeable.switch_to`. `done` must not raise."""
        with self._changed:
            if self._closed or (self._switch and self._switch.is_running):
                return False
            self._switch = Switch(settings.model)
        Thread(target=self._exchange, args=(settings, done), name="switch", daemon=True).start()
        return True

    @contextmanager
    def use(self, stop: Event | None = None) -> Iterator[None]:
        """Keep the model as it is until the block is left: a prompt fits one model only.

        Waits while models are exchanged; raises InputError if `stop` is set meanwhile.
        """
        with self._changed:
            while not self._changed.wait_for(lambda: not self._is_away(), _POLL_S):
                if stop is not None and stop.is_set():
                    raise InputError("Another model is being loaded; ask again when it is there.")
            self._users += 1
        try:
            yield
        finally:
            with self._changed:
                self._users -= 1
                self._changed.notify_all()

    @property
    def info(self) -> EngineInfo:
        """Waits for an exchange and for the load."""
        return self._settled().info

    @property
    def tokenizer(self) -> ChatTokenizer:
        """Waits for an exchange."""
        return self._settled().tokenizer

    @property
    def status(self) -> EngineStatus:
        """ "loading" from the moment that no new reply may begin."""
        with self._changed:
            engine, switch = self._engine, self._switch
            if switch and self._is_away():
                return EngineStatus("loading", switch.message, switch.progress)
        return engine.status

    def generate(
        self,
        prompt_ids: Sequence[int],
        params: SamplingParams,
        *,
        conversation_id: str | None = None,
        stop: Event | None = None,
        ladder: tuple[str, ...] | None = None,
    ) -> Iterator[EngineEvent]:
        """See `Engine.generate`. Whoever made the prompt should be inside `use`."""
        with self._changed:
            engine = self._engine
            self._users += 1
        try:
            yield from engine.generate(
                prompt_ids, params, conversation_id=conversation_id, stop=stop, ladder=ladder
            )
        finally:
            with self._changed:
                self._users -= 1
                self._changed.notify_all()

    def forget(self, conversation_id: str) -> None:
        self._current().forget(conversation_id)

    def memory(self) -> MemoryFigures:
        return self._current().memory()

    def reach(self) -> Reach:
        """See `Distant.reach`."""
        return reach_of(self._current())

    def reload(self) -> None:
        """Try a failed load again."""
        reload = getattr(self._current(), "reload", None)
        if reload is not None:
            reload()

    def close(self) -> None:
        """Free the model; an exchange that runs is given up."""
        with self._changed:
            self._closed = True
            engine = self._engine
            self._changed.notify_all()
        engine.close()

    def _current(self) -> Engine:
        with self._changed:
            return self._engine

    def _settled(self) -> Engine:
        """The engine once none is being exchanged; those inside `use` never wait here."""
        with self._changed:
            self._changed.wait_for(lambda: self._closed or not self._is_exchanged())
            return self._engine

    def _is_away(self) -> bool:
        """Whether no new reply may begin."""
        return self._is_exchanged() or bool(self._switch and self._switch.phase == "ending")

    def _is_exchanged(self) -> bool:
        phase = self._switch.phase if self._switch else ""
        return phase in ("loading", "restoring") and not self._closed

    def _tell(self, phase: Phase, message: str = "", progress: float | None = None) -> None:
        with self._changed:
            assert self._switch is not None
            self._switch = Switch(self._switch.model, phase, message, progress)
            self._changed.notify_all()

    def _exchange(self, settings: Settings, done: Callable[[Settings | None], None]) -> None:
        old = self._settings
        try:
            self._prepare(settings, partial(self._tell, "preparing"))
        except ChatbotError as error:
            done(None)
            self._tell("failed", str(error))
            return
        if not self._end_replies() or not self._replace("loading", settings):
            return
        problem = self._follow("loading")
        if problem is None:
            self._settings = settings
            done(settings)
            self._tell("done")
            return
        if self._replace("restoring", old):
            self._follow("restoring")
            done(None)
            self._tell("failed", problem)

    def _end_replies(self) -> bool:
        """Wait for the replies in the making; new ones wait meanwhile. False when closed."""
        self._tell("ending", "Replies that are being written come first.")
        with self._changed:
            self._changed.wait_for(lambda: self._users == 0 or self._closed)
            return not self._closed

    def _replace(self, phase: Phase, settings: Settings) -> bool:
        """Free the model and start to load another. False when closed meanwhile."""
        self._tell(phase, "The model is loading.")
        self._current().close()
        with self._changed:
            if self._closed:
                return False
            self._engine = self._load(settings)
        return True

    def _follow(self, phase: Phase) -> str | None:
        """Wait for the load; why it failed, or None."""
        while (status := self._current().status).state == "loading":
            self._tell(phase, status.message, status.progress)
            with self._changed:
                if self._changed.wait_for(lambda: self._closed, _POLL_S):
                    return "The program ends."
        return status.message if status.state == "failed" else None
