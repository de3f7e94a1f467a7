"""Chats from ChatGPT's export, `conversations.json`: each is a tree of messages.

The branch that was shown last becomes the chat, the others its versions. Knows no file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import takewhile
from typing import Any, TypeGuard

from chatbot.errors import InputError
from chatbot.import_changes import TWICE, Changes, told_of
from chatbot.import_messages import parse_messages
from chatbot.messages import Branch, Conversation

Node = Mapping[str, Any]
_LATEST_S = 6e10
"""About the year 3871; beyond it, and so long before 1970, a time is a mistake."""


@dataclass(frozen=True, slots=True)
class ChatFile:
    """What a file with chats held. `left_out` names each chat that cannot be read, and says why.

    `changed` are sentences on what of the chats is not as it was in the file.
    """

    chats: tuple[Conversation, ...]
    left_out: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()


def is_chatgpt(data: object) -> bool:
    """Whether parsed JSON is such an export, or one chat of it."""
    return any(_is_chat(chat) for chat in (data if isinstance(data, list) else [data]))


def parse_chatgpt(data: object) -> ChatFile:
    """All chats of an export that have a message, in its order; a faulty one hinders no other.

    Kept are ids, times, titles and all text; what is no text leaves a mark such as "[image]".
    What tools and the model's own thinking wrote stands on the side of the answer, under its
    name; messages that ChatGPT hides from the user are left out. Raises InputError that names
    the first chat if none can be read. A message with the id of another one gets a fresh one.
    """
    found: list[Conversation] = []
    left_out, changed = list[str](), list[str]()
    for number, chat in enumerate(data if isinstance(data, list) else [data]):
        title = f" {chat['title']}" if isinstance(chat, dict) and chat.get("title") else ""
        name = f"[{number}]{title}"
        changes: Changes = Changes()
        try:
            found.append(_conversation(chat, changes))
        except InputError as error:
            left_out.append(f"{name}: {error}")
        else:
            changed += [f"{name}: {sentence}" for sentence in told_of(changes)]
    if left_out and not found:
        raise InputError(left_out[0])
    chats = tuple(chat for chat in found if chat.turns)
    return ChatFile(chats, tuple(left_out), tuple(changed))


def _is_chat(chat: object) -> TypeGuard[Mapping[str, Any]]:
    return isinstance(chat, dict) and isinstance(chat.get("mapping"), dict)


def _conversation(chat: object, changes: Changes) -> Conversation:
    if not _is_chat(chat):
        raise InputError("it is no chat of ChatGPT: it has no 'mapping'.")
    nodes = _nodes(chat["mapping"])
    leaves = _leaves(nodes)
    shown = str(chat.get("current_node"))
    if shown not in nodes:
        shown = max(leaves, key=lambda leaf: _time_of(nodes[leaf]), default="")
    path = list(_path(nodes, shown))[::-1]
    nodes = _with_own_ids(nodes, path, changes)
    main = _parsed(chat, nodes, path)
    found = (_branch(main, nodes, path, leaf) for leaf in leaves if leaf != shown)
    return replace(main, branches=tuple(branch for branch in found if branch is not None))


def _nodes(mapping: Mapping[str, object]) -> dict[str, Node]:
    """The places of the tree. Raises InputError for one that is neither an object nor null."""
    for name, node in mapping.items():
        if node is not None and not isinstance(node, dict):
            raise InputError(f"the message {name!r} is no object.")
    return {name: node for name, node in mapping.items() if isinstance(node, dict)}


def _with_own_ids(
    nodes: Mapping[str, Node], path: Sequence[str], changes: Changes
) -> dict[str, Node]:
    """The places with an id for each message, none twice; those that are shown keep theirs."""
    own: dict[str, Node] = dict(nodes)
    seen: set[str] = set()
    for name in dict.fromkeys((*path, *nodes)):
        read = _message(name, nodes[name])
        fresh = read["id"] if read else ""
        while fresh in seen:
            fresh += "'"
        seen |= {fresh} - {""}
        if read and fresh != read["id"]:
            changes[TWICE] += 1
            own[name] = {**nodes[name], "message": {**nodes[name]["message"], "id": fresh}}
    return own


def _leaves(nodes: Mapping[str, Node]) -> list[str]:
    """The places that none names as its parent; `children` may be missing or name lost ones.

    Raises InputError for places that all go round in circles.
    """
    parents = {name for node in nodes.values() if isinstance(name := node.get("parent"), str)}
    leaves = [name for name in nodes if name not in parents]
    if nodes and not leaves:
        raise InputError("none of its messages is the last one.")
    return leaves


def _branch(
    main: Conversation, nodes: Mapping[str, Node], main_path: Sequence[str], leaf: str
) -> Branch | None:
    """What follows up to a leaf in the place of turns of `main`; None if that is nothing.

    Read is only what leaves the shown branch, with the turn in which it does so: a chat may have
    thousands of messages and hundreds of branches.
    """
    places = {name: n for n, name in enumerate(main_path)}
    up = list(_path(nodes, leaf))
    own = list(takewhile(lambda name: name not in places, up))
    shared = main_path[: places[up[len(own)]] + 1] if len(own) < len(up) else ()
    visible = [name for name in shared if _message(name, nodes[name]) is not None]
    at = before = 0
    for turn in main.turns:
        if before + len(turn.message_ids) >= len(visible):
            break
        at, before = at + 1, before + len(turn.message_ids)
    other = _parsed({}, nodes, [*visible[before:], *own[::-1]]).turns
    for n, (mine, theirs) in enumerate(zip(main.turns[at:], other, strict=False)):
        if mine.message_ids != theirs.message_ids:
            return Branch(at + n, other[n:])
    return None


def _parsed(
    chat: Mapping[str, Any], nodes: Mapping[str, Node], path: Sequence[str]
) -> Conversation:
    messages = [m for name in path if (m := _message(name, nodes[name])) is not None]
    whole = {
        "id": chat.get("conversation_id") or chat.get("id"),
        "title": _text(chat.get("title")) or "",
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
    author, content = _object(message.get("author")), _content(message.get("content"))
    role = author.get("role")
    text = "\n".join(_texts(content))
    if not text.strip() or role == "system":
        return None
    is_answer = role != "user"
    kind = content.get("content_type")
    aside = _text(author.get("name")) or role if role == "tool" else None
    if role == "assistant" and kind in ("thoughts", "reasoning_recap", "code"):
        aside = kind
    return {
        "id": _text(message.get("id")) or name,
        "role": "assistant" if is_answer else "user",
        "name": aside,
        "content": text,
        "created": _moment(message.get("create_time")),
    }


def _is_hidden(message: Mapping[str, Any]) -> bool:
    metadata = _object(message.get("metadata"))
    return bool(metadata.get("is_visually_hidden_from_conversation"))


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _object(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _content(value: object) -> Mapping[str, Any]:
    """The content of a message; a bare text or list of parts is taken for its parts."""
    if isinstance(value, str | list):
        return {"parts": [value] if isinstance(value, str) else value}
    return _object(value)


def _texts(content: Mapping[str, Any]) -> Iterator[str]:
    parts = content.get("parts")
    for part in parts if isinstance(parts, list) else ():
        yield part if isinstance(part, str) else _other_part(part)
    for key in ("text", "result", "content", "user_instructions", "user_profile"):
        if isinstance(content.get(key), str):
            yield content[key]
    thoughts = content.get("thoughts")
    for thought in thoughts if isinstance(thoughts, list) else ():
        if isinstance(thought, dict):
            yield "\n".join(str(thought[k]) for k in ("summary", "content") if thought.get(k))


def _other_part(part: object) -> str:
    """The text of a part that is an object, such as a transcript; else a mark for what it is."""
    kind = part.get("content_type", "part") if isinstance(part, dict) else "part"
    if isinstance(part, dict) and isinstance(part.get("text"), str):
        return str(part["text"])
    return "[image]" if kind == "image_asset_pointer" else f"[{kind}]"


def _time_of(node: Node) -> float:
    time = _object(node.get("message")).get("create_time")
    return float(time) if isinstance(time, int | float) and abs(time) < _LATEST_S else 0.0


def _moment(time: object) -> str | None:
    """Seconds since 1970 in UTC as ISO 8601; texts as they are."""
    if isinstance(time, bool) or not isinstance(time, int | float):
        return time if isinstance(time, str) else None
    if not abs(time) < _LATEST_S:
        return None
    return datetime.fromtimestamp(time, UTC).isoformat(timespec="milliseconds")
