"""Chats from ChatGPT's export, `conversations.json`: each is a tree of messages.

The branch that was shown last becomes the chat, the others its versions. Knows no file.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from chatbot.errors import InputError
from chatbot.import_messages import parse_messages
from chatbot.messages import Branch, Conversation

Node = Mapping[str, Any]


def is_chatgpt(data: object) -> bool:
    """Whether parsed JSON is such an export, or one chat of it."""
    first = data[0] if isinstance(data, list) and data else data
    return isinstance(first, dict) and isinstance(first.get("mapping"), dict)


def parse_chatgpt(data: object) -> list[Conversation]:
    """All chats of an export that have a message, in its order.

    Kept are ids, times, titles and all text; what is no text leaves a mark such as "[image]".
    What tools and the model's own thinking wrote stands on the side of the answer, under its
    name; messages that ChatGPT hides from the user are left out. Raises InputError that names
    the chat.
    """
    chats = data if isinstance(data, list) else [data]
    found = []
    for number, chat in enumerate(chats):
        if not is_chatgpt(chat):
            raise InputError(f"[{number}] is no chat of ChatGPT: it has no 'mapping'.")
        try:
            found.append(_conversation(chat))
        except InputError as error:
            raise InputError(f"[{number}] {chat.get('title') or ''}: {error}") from error
    return [conversation for conversation in found if conversation.turns]


def _conversation(chat: Mapping[str, Any]) -> Conversation:
    nodes: Mapping[str, Node] = chat["mapping"]
    leaves = [name for name, node in nodes.items() if not node.get("children")]
    shown = str(chat.get("current_node"))
    if shown not in nodes:
        shown = max(leaves, key=lambda leaf: _time_of(nodes[leaf]), default="")
    main = _parsed(chat, nodes, shown)
    branches = []
    for leaf in leaves:
        other = () if leaf == shown else _parsed(chat, nodes, leaf).turns
        pairs = zip(main.turns, other, strict=False)
        at = next((n for n, (a, b) in enumerate(pairs) if a.message_ids != b.message_ids), None)
        if at is not None:
            branches.append(Branch(at, other[at:]))
    return replace(main, branches=tuple(branches))


def _parsed(chat: Mapping[str, Any], nodes: Mapping[str, Node], leaf: str) -> Conversation:
    path = list(_path(nodes, leaf))[::-1]
    messages = [m for name in path if (m := _message(name, nodes[name])) is not None]
    whole = {
        "id": chat.get("conversation_id") or chat.get("id"),
        "title": chat.get("title") or "",
        "created": _moment(chat.get("create_time")),
        "updated": _moment(chat.get("update_time")),
        "messages": messages,
    }
    return parse_messages(whole)


def _path(nodes: Mapping[str, Node], leaf: str) -> Iterator[str]:
    """From a node up to its root. Raises InputError for a tree that is none."""
    seen: set[str] = set()
    name: object = leaf
    while isinstance(name, str) and name in nodes:
        if name in seen:
            raise InputError(f"the message {name!r} is its own ancestor.")
        seen.add(name)
        yield name
        name = nodes[name].get("parent")


def _message(name: str, node: Node) -> dict[str, Any] | None:
    message = node.get("message")
    if not isinstance(message, dict) or _is_hidden(message):
        return None
    author = message.get("author") or {}
    role = author.get("role")
    text = "\n".join(_texts(message.get("content") or {}))
    if not text.strip() or role == "system":
        return None
    is_answer = role != "user"
    kind = (message.get("content") or {}).get("content_type")
    aside = author.get("name") or role if role == "tool" else None
    if role == "assistant" and kind in ("thoughts", "reasoning_recap", "code"):
        aside = kind
    return {
        "id": message.get("id") or name,
        "role": "assistant" if is_answer else "user",
        "name": aside,
        "content": text,
        "created": _moment(message.get("create_time")),
    }


def _is_hidden(message: Mapping[str, Any]) -> bool:
    metadata = message.get("metadata") or {}
    return bool(metadata.get("is_visually_hidden_from_conversation"))


def _texts(content: Mapping[str, Any]) -> Iterator[str]:
    parts = content.get("parts")
    for part in parts if isinstance(parts, list) else ():
        yield part if isinstance(part, str) else _other_part(part)
    for key in ("text", "result", "content", "user_instructions", "user_profile"):
        if isinstance(content.get(key), str):
            yield content[key]
    thoughts: Sequence[Any] = content.get("thoughts") or ()
    for thought in thoughts:
        if isinstance(thought, dict):
            yield "\n".join(str(thought[k]) for k in ("summary", "content") if thought.get(k))


def _other_part(part: object) -> str:
    """The text of a part that is an object, such as a transcript; else a mark for what it is."""
    kind = part.get("content_type", "part") if isinstance(part, dict) else "part"
    if isinstance(part, dict) and isinstance(part.get("text"), str):
        return str(part["text"])
    return "[image]" if kind == "image_asset_pointer" else f"[{kind}]"


def _time_of(node: Node) -> float:
    time = (node.get("message") or {}).get("create_time")
    return float(time) if isinstance(time, int | float) else 0.0


def _moment(time: object) -> str | None:
    """Seconds since 1970 in UTC as ISO 8601; texts as they are."""
    if isinstance(time, bool) or not isinstance(time, int | float):
        return time if isinstance(time, str) else None
    if not math.isfinite(time) or abs(time) > 1e11:
        return None
    return datetime.fromtimestamp(time, UTC).isoformat(timespec="milliseconds")
