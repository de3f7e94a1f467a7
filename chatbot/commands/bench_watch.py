"""An engine under observation: at each event its caches are held against their bound."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from threading import Event

from chatbot.console import Console
from chatbot.engine.around import SharedEngine
from chatbot.engine.base import ChatTokenizer, EngineEvent, Finished, SamplingParams
from chatbot.engine.local import TransformersEngine
from chatbot.errors import ChatbotError


class WatchedEngine(SharedEngine[TransformersEngine]):
    """The engine, with a look at its caches at each event; remembers the last prompt."""

    def __init__(self, engine: TransformersEngine) -> None:
        super().__init__(engine)
        self.kv_bytes_max = 0
        self.prompt_ids: tuple[int, ...] = ()
        self.last: Finished | None = None

    def generate(
        self,
        prompt_ids: Sequence[int],
        params: SamplingParams,
        *,
        conversation_id: str | None = None,
        stop: Event | None = None,
        ladder: tuple[str, ...] | None = None,
    ) -> Iterator[EngineEvent]:
        for event in super().generate(
            prompt_ids, params, conversation_id=conversation_id, stop=stop, ladder=ladder
        ):
            self._look()
            if isinstance(event, Finished) and params.max_tokens > 1 and conversation_id:
                self.prompt_ids, self.last = tuple(prompt_ids), event
            yield event
        self._look()

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
