"""One step of a case, checked: a question or another thing that the user does. Runs nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from chatbot.regression.assertions import read_assertions
from chatbot.regression.rules import Assertion
from chatbot.regression.schema import Action, ReplyScript, Turn
from chatbot.regression.yaml_lines import Located, Place

REPLYING = ("ask", "retry", "edit")
_NEEDS: dict[str, tuple[str, ...]] = {
    "ask": ("user",), "edit": ("user", "turn"), "upload": ("document",),
    "delete_document": ("name",), "forget_turn": ("turn",), "switch_version": ("turn",),
    "add_fact": ("text",), "edit_summary": ("text",),
    "delete_fact": ("text",), "pin_fact": ("text",),
}  # fmt: skip
_TAKES: dict[str, tuple[str, ...]] = {
    "ask": ("repeat", "copies", "stop_after_tokens", "close_after_tokens", "reply", "assert"),
    "edit": ("copies", "stop_after_tokens", "close_after_tokens", "reply", "assert"),
    "retry": ("stop_after_tokens", "close_after_tokens", "reply", "assert"),
    "upload": ("name",),
}
MAX_MESSAGE_CHARACTERS = 10_000_000
_TEXT_NEEDED = ("says", "slow", "stall", "endless", "chance", "by-temperature")


@dataclass(frozen=True, slots=True)
class Step:
    """What happens at one step. `line` is where it is written."""

    action: Action
    line: int
    user: str = ""
    repeat: int = 1
    turn: int = 0
    text: str = ""
    name: str = ""
    document: Path | None = None
    conversation: str = "main"
    stop_after_tokens: int | None = None
    close_after_tokens: int | None = None
    reply: ReplyScript = field(default_factory=ReplyScript)
    asserts: tuple[Assertion, ...] = ()

    @property
    def replies(self) -> bool:
        """Whether a reply is made."""
        return self.action in REPLYING

    def question(self, number: int) -> str:
        """What the user says the `number`th time, counted from 1."""
        return self.user.replace("{i}", str(number)) if self.repeat > 1 else self.user


def read_step(
    located: Located,
    place: Place,
    turn: Turn,
    *,
    default_reply: str | ReplyScript,
    resolve: Callable[[Place, str], Path],
) -> Step:
    """A step out of what is written. Raises SuiteError for keys that do not go together."""
    _check_keys(located, place, turn)
    if len(turn.user or "") * turn.copies > MAX_MESSAGE_CHARACTERS:
        sentence = f"one message has {MAX_MESSAGE_CHARACTERS:,} characters at most; copy it less."
        raise located.fault((*place, "copies"), sentence)
    reply = _reply(default_reply if turn.reply is None else turn.reply)
    if reply.behaviour in _TEXT_NEEDED and not reply.text:
        sentence = f"a reply that {reply.behaviour} needs a text."
        raise located.fault((*place, "reply"), sentence)
    document = resolve((*place, "document"), turn.document) if turn.document else None
    return Step(
        action=turn.action,
        line=located.line(place),
        user="\n".join([turn.user] * turn.copies) if turn.user else "",
        repeat=turn.repeat,
        turn=turn.turn or 0,
        text=turn.text or "",
        name=turn.name or (document.name if document else ""),
        document=document,
        conversation=turn.conversation,
        stop_after_tokens=turn.stop_after_tokens,
        close_after_tokens=turn.close_after_tokens,
        reply=reply,
        asserts=read_assertions(located, (*place, "assert"), turn.asserts),
    )


def _check_keys(located: Located, place: Place, turn: Turn) -> None:
    given = turn.model_dump(exclude_unset=True, by_alias=True)
    allowed = {"action", "conversation", *_NEEDS.get(turn.action, ()), *_TAKES.get(turn.action, ())}
    for key in given:
        if key not in allowed:
            sentence = f"a turn that does '{turn.action}' takes no '{key}'; remove it."
            raise located.fault((*place, key), sentence)
    for key in _NEEDS.get(turn.action, ()):
        value = given.get(key)
        if value is None or (isinstance(value, str) and not value.strip()):
            raise located.fault(place, f"a turn that does '{turn.action}' needs '{key}'.")


def _reply(written: str | ReplyScript) -> ReplyScript:
    if isinstance(written, str):
        return ReplyScript(behaviour="says", text=written)
    return written
