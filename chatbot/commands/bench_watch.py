"""An engine under observation: at each event its caches are held against their bound."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from threading import Event

from chatbot.console import Console
from chatbot.engine.base import (
    ChatTokenizer,
    EngineEvent,
    EngineInfo,
    EngineStatus,
    Finished,
    SamplingParams,
)
from chatbot.engine.local import TransformersEngine
from chatbot.errors import ChatbotError
from chatbot.messages import MemoryFigures


class WatchedEngine:
    """The engine, with a look at its caches at each event; remembers the last prompt."""

    def __init__(self, engine: TransformersEngine) -> None:
        self.engine = engine
        self.kv_bytes_max = 0
        self.prompt_ids: tuple[int, ...] = ()
        self.last: Finished | None = None

    @property
    def info(self) -> EngineInfo:
        return self.engine.info

    @property
    def tokenizer(self) -> ChatTokenizer:
        return self.engine.tokenizer

    @property
    def status(self) -> EngineStatus:
        return self.engine.status

    def generate(
        self,
        prompt_ids: Sequence[int],
        params: SamplingParams,
        *,
        conversation_id: str | None = None,
        stop: Event | None = None,
        ladder: tuple[str, ...] | None = None,
    ) -> Iterator[EngineEvent]:
        for event in self.engine.generate(
            prompt_ids, params, conversation_id=conversation_id, stop=stop, ladder=ladder
        ):
            self._look()
            if isinstance(event, Finished) and params.max_tokens > 1 and conversation_id:
                self.prompt_ids, self.last = tuple(prompt_ids), event
            yield event
        self._look()

    def forget(self, conversation_id: str) -> None:
        self.engine.forget(conversation_id)

    def memory(self) -> MemoryFigures:
        return self.engine.memory()

    def close(self) -> None:
        """Left to whoever made the engine: more than one run may use it."""

    def forget_figures(self) -> None:
        """Begin anew, as for another run with the same model."""
        self.kv_bytes_max, self.prompt_ids, self.last = 0, (), None

    def _look(self) -> None:
        details = self.engine.info.details
        self.kv_bytes_max = max(self.kv_bytes_max, details["kv_bytes"])
        if details["kv_bytes"] > details["kv_bytes_bound"]:
            raise ChatbotError(
                f"The caches take {details['kv_bytes']} bytes, above their bound of "
                f"{details['kv_bytes_bound']}; please report this fault."
            )


class LoadLines:
    """Tells how the load goes."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def __call__(self, message: str, progress: float | None = None) -> None:
        self._console.model_progress(message, progress)

    def offer_tokenizer(self, tokenizer: ChatTokenizer) -> None:
        """Nobody waits for it."""
