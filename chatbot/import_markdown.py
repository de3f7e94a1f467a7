"""A chat from the Markdown that `export_markdown` writes. Knows no file and no database.

Only headings with a message's id at their end begin a message, in form 1 only those that carry on
the numbers of the turns: other headings belong to the text that they stand in.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import takewhile

from chatbot.errors import InputError
from chatbot.markdown_form import (
    ANSWERS,
    NOTE,
    SECTION,
    SELF,
    Heading,
    is_marked,
    lines_of,
    read_heading,
    unmarked,
)
from chatbot.messages import Conversation, Finish, Message, Role, Turn
from chatbot.records import new_id
from chatbot.written_times import read_time

_HEADING = re.compile(r"^## (\d+)\. (.+?)(?:, (\d{4}-\d\d-\d\d[^`]*?))? `([^`]+)`$")
_ID = re.compile(r"^- id: `(.+)`$")
_BEGUN = re.compile(r"^- (?:Begun|시작): (.+)$")
_OTHER = re.compile(r"^(?:No reply|답변 없음) \([a-z]+\)\.$")
_SOURCES = re.compile(r"^\*\*(?:Sources|출처)\*\*$")


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
    return any(_HEADING.match(line) for line in lines_of(text))


def parse_markdown(text: str) -> Conversation:
    """The messages with their ids and times, and the chat's own id and instructions. What was
    remembered of them is made afresh: `not_read` says so.

    Raises InputError for a text without messages in our form.
    """
    lines = lines_of(text)
    title = lines[0][2:].strip() if lines[0].startswith("# ") else ""
    messages = _marked(lines) if is_marked(lines) else _unmarked(lines)
    if not messages:
        raise InputError("there is no message in it; only Markdown that was saved here is read.")
    head = _head(lines)
    own_id = next((found[1] for line in head if (found := _ID.match(line))), "")
    begun = next((found[1] for line in head if (found := _BEGUN.match(line))), None)
    return Conversation(
        own_id or new_id(),
        title,
        _turns(messages),
        system_text=_system_text(head) if is_marked(lines) else None,
        created=read_time(begun) or "",
    )


def not_read(text: str) -> tuple[str, ...]:
    """Sentences on what of a saved chat `parse_markdown` does not take over."""
    found = (SECTION.match(line) for line in _head(lines_of(text)))
    if not any(section and not section["system"] for section in found):
        return ()
    return ("The summary and the facts are made afresh; a chat saved as JSON keeps them.",)


def _head(lines: Sequence[str]) -> list[str]:
    """What stands before the first message."""
    return list(takewhile(lambda line: not _HEADING.match(line) and not read_heading(line), lines))


def _system_text(head: Sequence[str]) -> str | None:
    part: list[str] | None = None
    for line in head:
        section = SECTION.match(line)
        if section and part is not None:
            break
        if section and section["system"]:
            part = []
        elif part is not None:
            part.append(unmarked(line, is_head=True))
    return None if part is None else "\n".join(_inner(part))


def _marked(lines: Sequence[str]) -> list[tuple[int, Message]]:
    """Messages of form 2, each with the number of its turn."""
    found: list[tuple[Heading, list[str]]] = []
    notes = False
    for line in lines:
        heading = read_heading(line)
        if heading:
            found.append((heading, []))
            notes = False
        notes = notes or bool(NOTE.match(line))
        if found and not heading and not notes:
            found[-1][1].append(line)
    return [
        (h.number, Message(h.id, h.role, _content(part), h.name, read_time(h.created)))
        for h, part in found
    ]


def _content(part: Sequence[str]) -> str:
    """A message out of its lines, of which the export added an empty one at either end."""
    return "\n".join(unmarked(line) for line in _inner(part))


def _inner(part: Sequence[str]) -> Sequence[str]:
    """Lines without the empty one that the export added at either end."""
    first = 1 if part and not part[0] else 0
    last = len(part) - (1 if len(part) > first and not part[-1] else 0)
    return part[first:last]


def _unmarked(lines: Sequence[str]) -> list[tuple[int, Message]]:
    """Messages of form 1, each with the number of its turn."""
    messages: list[tuple[int, Message]] = []
    current: _Open | None = None
    for line in lines:
        found = _HEADING.match(line)
        number = int(found[1]) if found else 0
        at = current.number if current else 0
        if found and number in (at, at + 1) and number > 0:
            if current:
                messages.append((current.number, _without_notes(current.message())))
            current = _opened(found, number, current)
        elif current:
            current.lines.append(line)
    if current:
        messages.append((current.number, _without_notes(current.message())))
    return messages


def _opened(found: re.Match[str], number: int, before: _Open | None) -> _Open:
    name = found[2]
    follows = before is not None and before.number == number
    role: Role = "user"
    if name in ANSWERS or (follows and name not in SELF):
        role = "assistant"
    own = None if name in (*ANSWERS, *SELF) else name
    return _Open(number, role, own, read_time(found[3]), found[4])


def _turns(messages: Sequence[tuple[int, Message]]) -> tuple[Turn, ...]:
    turns: list[Turn] = []
    for number in dict.fromkeys(number for number, _ in messages):
        mine = [message for n, message in messages if n == number]
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
