"""A reply while it is being made: engine events in, a turn to store out. Knows no store."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from threading import Event

from chatbot.assemble import AssembledPrompt
from chatbot.chat_events import ContextReady, NoticeEvent
from chatbot.engine.base import Engine, EngineEvent, Finished, SamplingParams, TextDelta
from chatbot.engine.ladder import step_notice, steps_of
from chatbot.errors import (
    ChatbotError,
    EngineError,
    OutOfMemoryError,
    PromptTooLongError,
    ServerBusyError,
    SmallerPromptError,
)
from chatbot.messages import Finish, MemoryFigures, Message, Notice, Turn, Usage
from chatbot.records import new_id, now_text
from chatbot.smaller_prompt import PromptMaker

TOO_LONG = Notice(
    "remote_too_long",
    "The server found the prompt too long, so a shorter one was made and sent once more.",
)


@dataclass(slots=True)
class Timing:
    """When a reply was asked for, came to its place at the engine, and showed its first text."""

    asked: float
    began: float | None = None
    first: float | None = None

    def first_text(self) -> None:
        """Text has come; only the first counts."""
        if self.first is None:
            self.first = time.monotonic()

    def seconds(self) -> tuple[float, float | None]:
        """From the question to its place at the engine, and to the first text if there was one."""
        ended = time.monotonic()
        waited = (ended if self.began is None else self.began) - self.asked
        return waited, None if self.first is None else self.first - self.asked


class ReplyRun:
    """A reply while it is being made."""

    def __init__(
        self, turn: Turn, prompt: AssembledPrompt, maker: PromptMaker | None = None
    ) -> None:
        """`maker` makes the prompt again for another budget, should memory run out."""
        self.turn = turn
        self.prompt = prompt
        self._maker = maker
        self.stored = False
        self.timing: Timing | None = None
        self.text = ""
        self.last: Finished | None = None
        self.notices: list[Notice] = []
        self.failed: ChatbotError | None = None

    def generate(
        self, engine: Engine, params: SamplingParams, *, conversation_id: str, stop: Event
    ) -> Iterator[EngineEvent | NoticeEvent | ContextReady]:
        """The engine's events, with a smaller prompt when memory ran out before the first token,
        or once when a server found it too long.

        Each new prompt is told by a notice and `ContextReady`. Raises as `Engine.generate`, but
        no SmallerPromptError.
        """
        ladder: tuple[str, ...] | None = () if self._maker else None
        was_too_long = False
        while True:
            # A longer one than the window reserves room for only as long as memory is not short.
            most = min(params.max_tokens, self.prompt.trace.reply_tokens)
            if not ladder and engine.info.replies_outgrow:
                most = params.max_tokens
            try:
                yield from engine.generate(
                    self.prompt.token_ids,
                    replace(params, max_tokens=most),
                    conversation_id=conversation_id,
                    stop=stop,
                    ladder=ladder,
                )
                return
            except SmallerPromptError as error:
                if self._maker is None:
                    raise
                ladder = error.ladder
            except PromptTooLongError as error:
                maker = None if was_too_long else self._maker
                fitting = maker.for_server(error.limit_tokens, self.prompt) if maker else None
                if fitting is None:
                    raise
                was_too_long, self.prompt = True, fitting
                yield NoticeEvent(self._noted(TOO_LONG))
                yield ContextReady(fitting.trace)
                continue
            ladder, smaller = self._maker.smaller(ladder, self.prompt)
            if smaller is not self.prompt:
                self.prompt = smaller
                yield NoticeEvent(step_notice(ladder[-1]))
                yield ContextReady(smaller.trace)

    def _noted(self, notice: Notice) -> Notice:
        self.notices.append(notice)
        return notice

    def take(self, event: EngineEvent | NoticeEvent | ContextReady) -> None:
        if isinstance(event, TextDelta):
            self.text += event.text
        elif isinstance(event, Finished):
            self.last = event
            self.notices += event.notices

    def fail(self, error: ChatbotError) -> None:
        self.failed = error
        code = "reply_failed"
        if isinstance(error, OutOfMemoryError):
            code = "out_of_memory"
            self.notices += map(step_notice, steps_of(error.ladder))
        self.notices.append(Notice(code, str(error), _reason(error)))

    def result(self, tokenizer_name: str, memory: MemoryFigures | None = None) -> Turn:
        """The turn with what there is of a reply; `memory` is as it is when a reply failed."""
        text = self.last.text if self.last else self.text
        usage = self.last.usage if self.last else self._usage_of_failure(memory)
        message = Message(new_id(), "assistant", text, created=now_text())
        finish: Finish
        if isinstance(self.failed, OutOfMemoryError):
            finish = "memory"
        elif self.failed is not None:
            finish = "error"
        else:
            finish = self.last.finish if self.last else "cancelled"
        return replace(
            self.turn,
            assistant=(message,) if text else (),
            finish=finish,
            usage=usage,
            trace=replace(self.prompt.trace, reused_tokens=usage.cached_tokens),
            reply_token_ids=self.last.token_ids if self.last else (),
            tokenizer_name=tokenizer_name,
            notices=(*self.prompt.trace.notices, *self.notices),
        )

    def _usage_of_failure(self, memory: MemoryFigures | None) -> Usage:
        ladder = self.failed.ladder if isinstance(self.failed, OutOfMemoryError) else ()
        return Usage(self.prompt.trace.prompt_tokens, memory=memory, ladder=steps_of(ladder))

    def with_notice(self, notice: Notice) -> Turn:
        """The turn with one more notice."""
        return replace(self.turn, notices=(*self.turn.notices, notice))


def _reason(error: ChatbotError) -> dict[str, str | float]:
    """Why a reply failed, for programs: its kind, and after how many seconds it may go."""
    if not isinstance(error, EngineError):
        return {}
    wish_s = error.retry_after_s if isinstance(error, ServerBusyError) else None
    return {"kind": error.kind} | ({} if wish_s is None else {"retry_after_s": wish_s})
