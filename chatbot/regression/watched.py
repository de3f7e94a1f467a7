"""An engine that another one stands behind, and that remembers what it was given."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from threading import Event
from typing import Any

from chatbot.engine.around import SharedEngine
from chatbot.engine.base import ChatTokenizer, Engine, EngineEvent, SamplingParams
from chatbot.regression.observation import EngineCall


class WatchedEngine(SharedEngine[Engine]):
    """Hands everything on. `last` is the last call for a reply, None before the first."""

    def __init__(self, engine: Engine) -> None:
        super().__init__(engine)
        self.last: EngineCall | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self.engine, name)

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
        # Summaries belong to no conversation, and reading ahead asks for a single token.
        if conversation_id is not None and params.max_tokens > 1:
            control = self.tokenizer.control_ids
            self.last = EngineCall(
                prompt_tokens=len(prompt_ids),
                control_ids=tuple(i for i in prompt_ids if i in control),
                max_tokens=params.max_tokens,
                temperature=params.temperature,
                seed=params.seed,
            )
        return super().generate(
            prompt_ids, params, conversation_id=conversation_id, stop=stop, ladder=ladder
        )


def template_control_ids(tokenizer: ChatTokenizer, n_turns: int) -> tuple[int, ...]:
    """The control ids that the template gives a prompt with so many past turns, in order."""
    form = tokenizer.chat_format
    ids = (
        *form.begin,
        *form.after_system,
        *(form.after_user + form.after_assistant) * n_turns,
        *form.end,
    )
    return tuple(i for i in ids if i in tokenizer.control_ids)
