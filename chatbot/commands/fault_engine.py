"""An engine in which memory runs out at a chosen place; the rest is the real one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from threading import Event
from typing import Any, Literal

from chatbot.engine.around import EngineAround
from chatbot.engine.base import EngineEvent, SamplingParams
from chatbot.engine.local import TransformersEngine

Place = Literal["first_token", "token_20", "piece_3", "fold", "warm"]
PLACES: tuple[Place, ...] = ("first_token", "token_20", "piece_3", "fold", "warm")
LEAST_REPLY_TOKENS = 24
"""So that memory can run out at token 20 of every reply."""
CallKind = Literal["reply", "fold", "warm"]
_KINDS: dict[Place, CallKind] = {"fold": "fold", "warm": "warm"}
_ERRORS = (
    MemoryError,
    lambda: RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB."),
    lambda: RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory"),
)


@dataclass
class Fault:
    """Where memory is to run out, and how many calls of the model in a row fail there."""

    place: Place
    times: int = 1
    raised: int = 0
    """So often it did."""


class FaultyEngine(EngineAround[TransformersEngine]):
    """See the module. `arm` sets the next fault; there is none before."""

    def __init__(self, engine: TransformersEngine, model: Any) -> None:
        super().__init__(engine)
        self._fault: Fault | None = None
        self._kind: CallKind = "reply"
        self._pieces = self._tokens = 0
        # Every call of the model, of whatever kind, begins with the embedding of its tokens.
        self._hook = model.get_input_embeddings().register_forward_pre_hook(self._before_call)

    def arm(self, fault: Fault | None) -> None:
        """Let memory run out there, once; None lets it be."""
        self._fault = fault

    def generate(
        self,
        prompt_ids: Sequence[int],
        params: SamplingParams,
        *,
        conversation_id: str | None = None,
        stop: Event | None = None,
        ladder: tuple[str, ...] | None = None,
    ) -> Iterator[EngineEvent]:
        self._pieces = self._tokens = 0
        # Summaries use no cache, and reading ahead asks for one token.
        ahead = "warm" if params.max_tokens == 1 else "reply"
        self._kind = "fold" if conversation_id is None else ahead  # type: ignore[assignment]
        if self._kind == "reply":
            # Whatever the model would say, token 20 comes, and no reply is empty.
            params = replace(params, min_tokens=min(LEAST_REPLY_TOKENS, params.max_tokens))
        yield from super().generate(
            prompt_ids, params, conversation_id=conversation_id, stop=stop, ladder=ladder
        )

    def close(self) -> None:
        self._hook.remove()
        super().close()

    def _before_call(self, module: Any, arguments: tuple[Any, ...]) -> None:
        if arguments[0].numel() > 1:
            self._pieces += 1
        else:
            self._tokens += 1
        fault = self._fault
        if fault is not None and fault.raised < fault.times and self._is_there(fault):
            fault.raised += 1
            raise _ERRORS[fault.raised % len(_ERRORS)]()

    def _is_there(self, fault: Fault) -> bool:
        if self._kind != _KINDS.get(fault.place, "reply"):
            return False
        if fault.place == "token_20":
            return self._tokens >= 20
        if fault.place == "piece_3":
            return self._pieces >= 3 or fault.raised > 0
        return True
