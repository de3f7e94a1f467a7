"""A reply while it is being made: engine events in, a turn to store out. Knows no store."""

from __future__ import annotations

from dataclasses import replace

from chatbot.assemble import AssembledPrompt
from chatbot.engine.base import EngineEvent, Finished, TextDelta
from chatbot.errors import ChatbotError, OutOfMemoryError
from chatbot.messages import Finish, Message, Notice, Turn, Usage
from chatbot.records import new_id, now_text


class ReplyRun:
    """A reply while it is being made."""

    def __init__(self, turn: Turn, prompt: AssembledPrompt) -> None:
        self.turn = turn
        self.prompt = prompt
        self.stored = False
        self.text = ""
        self.last: Finished | None = None
        self.notices: list[Notice] = []
        self.failed: ChatbotError | None = None

    def take(self, event: EngineEvent) -> None:
        if isinstance(event, TextDelta):
            self.text += event.text
        elif isinstance(event, Finished):
            self.last = event
            self.notices += event.notices

    def fail(self, error: ChatbotError) -> None:
        self.failed = error
        code = "out_of_memory" if isinstance(error, OutOfMemoryError) else "reply_failed"
        self.notices.append(Notice(code, str(error)))

    def result(self, tokenizer_name: str) -> Turn:
        """The turn with what there is of a reply."""
        text = self.last.text if self.last else self.text
        usage = self.last.usage if self.last else Usage(self.prompt.trace.prompt_tokens)
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

    def with_notice(self, notice: Notice) -> Turn:
        """The turn with one more notice."""
        return replace(self.turn, notices=(*self.turn.notices, notice))
