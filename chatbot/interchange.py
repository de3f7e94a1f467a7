"""Conversations from JSON files, traces and citations to JSON. Knows no database and no engine."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from chatbot.errors import InputError
from chatbot.messages import Conversation, Message, PromptTrace, Role, Segment, Turn
from chatbot.records import new_id, storable, to_plain
from retrieval.types import Citation

_ROLES: dict[str, Role] = {
    "system": "system", "developer": "system", "user": "user", "assistant": "assistant",
}  # fmt: skip


def read_conversation(path: Path) -> Conversation:
    """A chat from a JSON file: `{"messages": [...]}` or a bare list of OpenAI-style messages.

    Messages are `{role, content}` with `id`, `name` and `created` if there are any. Raises
    InputError that names the file, and the message where one is at fault.
    """
    data = _read_json(path)
    messages = data.get("messages") if isinstance(data, dict) else data
    if not isinstance(messages, list):
        raise InputError(
            f"{path} holds no conversation; it needs a list of messages, or an object with one "
            "under 'messages'."
        )
    extra = data if isinstance(data, dict) else {}
    title = extra.get("title")
    return conversation_of(messages, title=title if isinstance(title, str) else "", origin=path)


def conversation_of(
    messages: Sequence[Any], *, title: str = "", origin: Path | str = "The conversation"
) -> Conversation:
    """Group messages into turns: each run of the user's, with the replies that follow it.

    System messages become the system text. Raises InputError for a message of another shape.
    """
    read = [_message(item, number, origin) for number, item in enumerate(messages, start=1)]
    seen: set[str] = set()
    for message in read:
        if message.id in seen:
            raise InputError(f"{origin} has two messages with the id {message.id!r}.")
        seen.add(message.id)
    system = "\n\n".join(m.content for m in read if m.role == "system")
    return Conversation(
        id=new_id(),
        title=storable(title),
        turns=_turns([m for m in read if m.role != "system"]),
        system_text=system or None,
    )


def trace_record(trace: PromptTrace) -> dict[str, Any]:
    """A trace as its JSON object; keys of a segment that say nothing are left out."""
    return {
        "question": storable(trace.question),
        "prompt_tokens": trace.prompt_tokens,
        "limit_tokens": trace.limit_tokens,
        "reply_tokens": trace.reply_tokens,
        "reused_tokens": trace.reused_tokens,
        "segments": [_segment_record(segment) for segment in trace.segments],
        "dropped": [
            {**_segment_record(dropped.segment), "reason": dropped.reason}
            for dropped in trace.dropped
        ],
        "query": storable(trace.query),
        "notices": [to_plain(notice) for notice in trace.notices],
    }


def citation_record(citation: Citation) -> dict[str, Any]:
    """A citation as its JSON object; `page` is null for formats without pages."""
    keys = ("label", "document", "page", "start", "end", "quote")
    return {key: to_plain(getattr(citation, key)) for key in keys}


def _segment_record(segment: Segment) -> dict[str, Any]:
    plain: dict[str, Any] = to_plain(segment)
    return {key: value for key, value in plain.items() if value is not None and value != []}


def _read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        reason = error.strerror or "it cannot be read"
        raise InputError(f"The file {path} cannot be read: {reason}.") from error
    except ValueError as error:
        raise InputError(f"{path} is not valid JSON in UTF-8: {error}.") from error
    except RecursionError as error:
        raise InputError(f"{path} is nested too deeply for a conversation.") from error


def _message(item: Any, number: int, origin: Path | str) -> Message:
    where = f"Message {number} of {origin}"
    if not isinstance(item, Mapping):
        raise InputError(f"{where} is not an object with a role and a content.")
    role = _ROLES.get(str(item.get("role")))
    if role is None:
        raise InputError(
            f"{where} has the role {item.get('role')!r}; it must be system, user or assistant."
        )
    given_id = item.get("id")
    return Message(
        id=f"m{number}" if given_id is None else storable(str(given_id)),
        role=role,
        content=storable(_content(item.get("content"), where)),
        name=None if item.get("name") is None else storable(str(item["name"])),
        created=None if item.get("created") is None else storable(str(item["created"])),
    )


def _content(content: Any, where: str) -> str:
    """The text of a message; OpenAI's list of parts may hold texts only."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        texts = [part.get("text") for part in content if isinstance(part, Mapping)]
        if len(texts) == len(content) and all(isinstance(text, str) for text in texts):
            return "\n".join(str(text) for text in texts)
    raise InputError(f"{where} has no text as its content.")


def _turns(messages: Sequence[Message]) -> tuple[Turn, ...]:
    turns: list[Turn] = []
    user: list[Message] = []
    assistant: list[Message] = []
    for message in messages:
        if message.role == "user" and assistant:
            turns.append(_turn(user, assistant))
            user, assistant = [], []
        (user if message.role == "user" else assistant).append(message)
    if user or assistant:
        turns.append(_turn(user, assistant))
    return tuple(turns)


def _turn(user: Sequence[Message], assistant: Sequence[Message]) -> Turn:
    first = (*user, *assistant)[0]
    return Turn(
        id=new_id(), user=tuple(user), assistant=tuple(assistant), created=first.created or ""
    )
