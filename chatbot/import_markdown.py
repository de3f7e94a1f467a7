"""A chat from the Markdown that `export_markdown` writes. Knows no file and no database.

Only headings that carry on the numbers of the turns, with a message's id at their end, begin a
message: other headings belong to the text that they stand in.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from chatbot.errors import InputError
from chatbot.messages import Conversation, Finish, Message, Role, Turn
from chatbot.records import new_id

_HEADING = re.compile(r"^## (\d+)\. (.+?)(?:, (\d{4}-\d\d-\d\d[^`]*?))? `([^`]+)`$")
_OTHER = re.compile(r"^(?:No reply|답변 없음) \([a-z]+\)\.$")
_SOURCES = re.compile(r"^\*\*(?:Sources|출처)\*\*$")
_ANSWERS = ("Assistant", "도우미")
_SELF = ("You", "나")


@dataclass
class _Open:
    """A message that is being read."""

    number: int
    role: Role
    name: str | None
    created: str | None
    id: str
    lines: list[str] = field(default_factory=list)

    def message(self) -> Message:
        text = "\n".join(self.lines).strip("\n")
        return Message(self.id, self.role, text, self.name, self.created)


def looks_like_chat(text: str) -> bool:
    """Whether there is at least one message in our form."""
    return any(_HEADING.match(line) for line in text.splitlines())


def parse_markdown(text: str) -> Conversation:
    """The messages with their ids and times; what was remembered of them is made afresh.

    Raises InputError for a text without messages in our form.
    """
    lines = text.lstrip("\ufeff").splitlines()
    title = lines[0][2:].strip() if lines and lines[0].startswith("# ") else ""
    messages: list[tuple[int, Message]] = []
    current: _Open | None = None
    for line in lines:
        found = _HEADING.match(line)
        number = int(found[1]) if found else 0
        at = current.number if current else 0
        if found and number in (at, at + 1) and number > 0:
            if current:
                messages.append((current.number, current.message()))
            current = _opened(found, number, current)
        elif current:
            current.lines.append(line)
    if current is None:
        raise InputError("there is no message in it; only Markdown that was saved here is read.")
    messages.append((current.number, current.message()))
    return Conversation(new_id(), title, _turns(messages))


def _opened(found: re.Match[str], number: int, before: _Open | None) -> _Open:
    name = found[2]
    follows = before is not None and before.number == number
    role: Role = "user"
    if name in _ANSWERS or (follows and name not in _SELF):
        role = "assistant"
    own = None if name in (*_ANSWERS, *_SELF) else name
    return _Open(number, role, own, found[3], found[4])


def _turns(messages: list[tuple[int, Message]]) -> tuple[Turn, ...]:
    turns: list[Turn] = []
    for number in dict.fromkeys(number for number, _ in messages):
        mine = [_without_notes(message) for n, message in messages if n == number]
        user = tuple(m for m in mine if m.role == "user")
        answers = tuple(m for m in mine if m.role == "assistant")
        finish: Finish = "stop" if answers else "interrupted"
        turns.append(Turn(new_id(), user, answers, finish=finish, created=mine[0].created or ""))
    return tuple(turns)


def _without_notes(message: Message) -> Message:
    """Without the lines that the export adds at the end of a turn: its sources, or no reply."""
    lines = message.content.split("\n")
    for at, line in enumerate(lines):
        rest = [other for other in lines[at + 1 :] if other.strip()]
        if _SOURCES.match(line) and rest and all(other.startswith("- [") for other in rest):
            lines = lines[:at]
            break
    while lines and (not lines[-1].strip() or _OTHER.match(lines[-1])):
        lines.pop()
    return Message(message.id, message.role, "\n".join(lines), message.name, message.created)
