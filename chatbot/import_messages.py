"""Chats from JSON: lists of messages as other programs write them, or our own export.

Knows no file and no database. Nothing of a chat's text is left out without an error.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from chatbot.errors import InputError
from chatbot.export_messages import (
    export_conversation,
    read_decisions,
    read_summary,
    read_turns,
)
from chatbot.import_changes import NULL, TWICE, Changes, time_of, told_of
from chatbot.messages import Conversation, Message, Turn
from chatbot.records import storable

__all__ = ["export_conversation", "parse_messages"]

_INSTRUCTING = ("system", "developer")
# Later instructions and results of tools keep their place, on the user's side of a turn.
_ASIDE = (*_INSTRUCTING, "tool", "function")
_ASIDE_NAME = "system"
_TEXT_PARTS = ("text", "input_text", "output_text")

_KINDS = {
    bool: "true or false",
    str: "a text",
    int: "a number",
    float: "a number",
    list: "a list",
    dict: "an object",
    type(None): "null",
}


@dataclass(frozen=True, slots=True)
class _Written:
    """A message as it was written: with its own word for the role, and "" for a missing id."""

    role: str
    id: str
    content: str
    name: str | None
    created: str | None


def parse_messages(data: object, told: list[str] | None = None) -> Conversation:
    """The conversation in parsed JSON: `{"messages": [...]}` or a bare list of messages.

    A message has `role` and `content` (a text, or a list of text parts), and may have `id`, `name`
    and `created`. Without id it gets "m1", "m2"... by its place. Leading system messages become
    the system text; later ones, and those of tools, stay as messages of the user named "system".
    A run of the user's messages with the run of answers after it is one turn: "t1", "t2"...
    An export of our own comes back as it was. Raises InputError that names the message.

    With `told`, parts that are no text leave a mark such as "[image]", null is an empty text, and
    an id that comes again is replaced by a fresh one; a sentence on each is added to the list.
    Without it they are errors too. A time that cannot be read is none, and told of as well.
    """
    changes: Changes | None = None if told is None else Changes()
    whole = {"messages": data} if isinstance(data, list) else data
    if not isinstance(whole, dict) or not isinstance(whole.get("messages"), list):
        message = 'A chat must be a list of messages, or {"messages": [...]}.'
        raise InputError(message)
    items = enumerate(whole["messages"])
    written = [_read(item, f"messages[{n}]", changes) for n, item in items]
    # What else an export of ours says of its messages, it says by their ids.
    ids = _ids(written, None if "turns" in whole else changes)
    system_text, n_system = _text_or_none(whole, "system"), 0
    if "system" not in whole:
        system_text, n_system = _leading_system(written)
    messages = [_message(one, of) for one, of in zip(written, ids, strict=True)][n_system:]
    turns = read_turns(whole["turns"], messages) if "turns" in whole else _turns(messages)
    chat = Conversation(
        id=_id(whole.get("id"), "'id' of the chat"),
        title=_text_or_none(whole, "title") or "",
        turns=turns,
        summary=read_summary(whole.get("summary"), len(turns)),
        system_text=system_text,
        created=_created(whole.get("created"), "'created' of the chat", changes) or "",
        updated=_created(whole.get("updated"), "'updated' of the chat", changes) or "",
        document_ids=_document_ids(whole.get("document_ids", [])),
        decisions=read_decisions(whole.get("fold_decisions")),
    )
    if told is not None and changes:
        told += told_of(changes)
    return chat


def _read(item: object, place: str, changes: Changes | None) -> _Written:
    if not isinstance(item, dict):
        raise InputError(f"{place} is {_kind(item)}; expected an object with role and content.")
    allowed = ("user", "assistant", *_ASIDE)
    role = item.get("role")
    if role is None:
        raise InputError(f"{place} has no 'role'; expected system, user or assistant.")
    if role not in allowed:
        raise InputError(f"{place} has the role {role!r}; expected system, user or assistant.")
    name = item.get("name")
    if not isinstance(name, str | None):
        raise InputError(f"{place}.name is {_kind(name)}; expected a text.")
    return _Written(
        role=role,
        id=_id(item.get("id"), f"{place}.id"),
        content=storable(_content(item, place, changes)),
        name=storable(name) if name else None,
        created=_created(item.get("created"), f"{place}.created", changes),
    )


def _content(item: dict[str, Any], place: str, changes: Changes | None) -> str:
    """The text, and what stands in its stead when a model calls tools or refuses."""
    content = item.get("content")
    texts = [item["refusal"]] if isinstance(item.get("refusal"), str) else []
    texts += [_compact(item[key]) for key in ("tool_calls", "function_call") if item.get(key)]
    if isinstance(content, str):
        return "\n".join([content, *texts])
    if isinstance(content, list):
        parts = [_part(part, f"{place}.content[{n}]", changes) for n, part in enumerate(content)]
        return "\n".join([*parts, *texts])
    if content is None and texts:
        return "\n".join(texts)
    if content is None and "content" in item and changes is not None:
        changes[NULL] += 1
        return ""
    if content is None:
        raise InputError(f"{place} has no 'content'; expected a text.")
    raise InputError(f"{place}.content is {_kind(content)}; expected a text or text parts.")


def _part(part: object, place: str, changes: Changes | None) -> str:
    kind = part.get("type") if isinstance(part, dict) else None
    text = part.get("text") if isinstance(part, dict) and kind in _TEXT_PARTS else None
    if isinstance(text, str):
        return text
    if kind is None:
        raise InputError(f'{place} is not a part; expected {{"type": "text", "text": ...}}.')
    if kind in _TEXT_PARTS:
        raise InputError(f"{place} has no 'text'; expected a text.")
    if isinstance(kind, str) and changes is not None:
        kind = storable(kind[:40])
        changes[kind] += 1
        return "[image]" if "image" in kind else f"[{kind}]"
    raise InputError(f"{place} is of type {kind!r}; only text parts can be imported.")


def _ids(written: Sequence[_Written], changes: Changes | None) -> list[str]:
    """An id for each message, none twice."""
    places: dict[str, int] = {}
    again: set[int] = set()
    for n, one in enumerate(written):
        if one.id and places.setdefault(one.id, n) != n:
            if changes is None:
                first = f"messages[{places[one.id]}]"
                message = f"messages[{n}] has the same id {one.id!r} as {first}; make ids unique."
                raise InputError(message)
            again.add(n)
            changes[TWICE] += 1
    ids: list[str] = []
    for n, one in enumerate(written):
        wanted = one.id or f"m{n + 1}"
        ids.append(wanted if one.id and n not in again else _free(wanted, places))
        places.setdefault(ids[-1], n)
    return ids


def _free(wanted: str, places: dict[str, int]) -> str:
    while wanted in places:
        wanted += "'"
    return wanted


def _leading_system(written: Sequence[_Written]) -> tuple[str | None, int]:
    """The text of the system messages that come first, and how many they are."""
    n = next((n for n, one in enumerate(written) if one.role not in _INSTRUCTING), len(written))
    return ("\n\n".join(one.content for one in written[:n]) if n else None), n


def _message(written: _Written, message_id: str) -> Message:
    role: Literal["user", "assistant"] = "assistant" if written.role == "assistant" else "user"
    name = written.name or (_ASIDE_NAME if written.role in _ASIDE else None)
    return Message(message_id, role, written.content, name, written.created)


def _turns(messages: Sequence[Message]) -> tuple[Turn, ...]:
    """A new turn begins with each message of the user that follows an answer."""
    groups: list[tuple[list[Message], list[Message]]] = []
    for message in messages:
        asked = message.role != "assistant"
        if not groups or (asked and groups[-1][1]):
            groups.append(([], []))
        groups[-1][0 if asked else 1].append(message)
    return tuple(
        Turn(f"t{n}", tuple(user), tuple(assistant), created=(user or assistant)[0].created or "")
        for n, (user, assistant) in enumerate(groups, start=1)
    )


def _id(value: object, place: str) -> str:
    """Texts and whole numbers as text; "" when there is none."""
    if value is None:
        return ""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise InputError(f"{place} is {_kind(value)}; expected a text or a whole number.")
    return storable(str(value))


def _created(value: object, place: str, changes: Changes | None) -> str | None:
    """None as well for a text or a number that is no time."""
    if value is None:
        return None
    finite = not isinstance(value, float) or math.isfinite(value)
    if isinstance(value, bool) or not isinstance(value, str | int | float) or not finite:
        raise InputError(f"{place} is {_kind(value)}; expected a text or a number.")
    time = time_of(value, changes)
    return storable(time) if time else None


def _text_or_none(whole: dict[str, Any], key: str) -> str | None:
    value = whole.get(key)
    if not isinstance(value, str | None):
        raise InputError(f"{key!r} of the chat is {_kind(value)}; expected a text.")
    return None if value is None else storable(value)


def _document_ids(value: object) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise InputError(f"'document_ids' of the chat is {_kind(value)}; expected a list.")
    return tuple(_id(one, f"document_ids[{n}]") for n, one in enumerate(value))


def _compact(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _kind(value: object) -> str:
    return _KINDS.get(type(value), f"a {type(value).__name__}")
