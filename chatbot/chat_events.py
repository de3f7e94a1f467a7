"""What happens during a reply, for whoever shows it. Frozen data, no behaviour."""

from __future__ import annotations

from dataclasses import dataclass

from chatbot.engine.base import TextDelta
from chatbot.messages import Notice, PromptTrace, Turn


@dataclass(frozen=True, slots=True)
class Queued:
    """Other replies come first: `position` of them have to finish."""

    position: int


@dataclass(frozen=True, slots=True)
class NoticeEvent:
    """Something that the user should know now."""

    notice: Notice


@dataclass(frozen=True, slots=True)
class ContextReady:
    """The prompt stands; the model begins to read it."""

    trace: PromptTrace


@dataclass(frozen=True, slots=True)
class TurnDone:
    """The last event of every reply, however it ended: the turn as it is stored."""

    turn: Turn


ChatEvent = Queued | NoticeEvent | ContextReady | TextDelta | TurnDone
