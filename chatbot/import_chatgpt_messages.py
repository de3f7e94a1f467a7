"""What ChatGPT's export says of one message, and the text that is shown of it. Knows no tree."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from chatbot.import_changes import HIDDEN, ODD, Changes, time_of
from chatbot.records import storable

Node = Mapping[str, Any]
_ABOUT_TEXT = ("content_type", "language", "response_format_name")
"""Keys that only say how a content is to be shown."""


def shown_message(name: str, node: Node, changes: Changes) -> dict[str, Any] | None:
    """The message at a place as `parse_messages` takes it; None where nothing is shown.

    What is no text leaves a mark such as "[image]"; what has a text and is not shown is counted.
    """
    message = node.get("message")
    if not isinstance(message, dict):
        changes[ODD] += message is not None
        return None
    author, content = object_of(message.get("author")), _content(message.get("content"))
    role = author.get("role")
    text = "\n".join((*_texts(content), *_attached(message)))
    if not text.strip() and any(v for k, v in content.items() if k not in (*_ABOUT_TEXT, "parts")):
        text = f"[{content.get('content_type', 'part')}]"
    if not text.strip():
        return None
    if role == "system" or _is_hidden(message):
        changes[HIDDEN] += 1
        return None
    return {
        "id": storable(text_or_none(message.get("id")) or name),
        "role": "user" if role == "user" else "assistant",
        "name": _aside(author, content.get("content_type")),
        "content": text,
        "created": time_of(message.get("create_time"), changes),
    }


def _aside(author: Node, kind: object) -> str | None:
    """The name under which what tools and the model's own thinking wrote stands."""
    role = author.get("role")
    if role == "tool":
        return text_or_none(author.get("name")) or "tool"
    if role == "assistant" and kind in ("thoughts", "reasoning_recap", "code"):
        return str(kind)
    return None


def _is_hidden(message: Node) -> bool:
    metadata = object_of(message.get("metadata"))
    return bool(metadata.get("is_visually_hidden_from_conversation"))


def text_or_none(value: object) -> str | None:
    """A text; None for anything else."""
    return value if isinstance(value, str) else None


def object_of(value: object) -> Node:
    """An object; one without keys for anything else."""
    return value if isinstance(value, dict) else {}


def _content(value: object) -> Node:
    """The content of a message; a bare text or list of parts is taken for its parts."""
    return {"parts": value} if isinstance(value, str | list) else object_of(value)


def _texts(content: Node) -> Iterator[str]:
    parts = content.get("parts")
    for part in parts if isinstance(parts, list) else [parts] if parts else ():
        yield part if isinstance(part, str) else _other_part(part)
    for key in ("text", "result", "content", "user_instructions", "user_profile"):
        if isinstance(content.get(key), str):
            yield content[key]
    thoughts = content.get("thoughts")
    for thought in thoughts if isinstance(thoughts, list) else [thoughts]:
        if isinstance(thought, dict):
            yield "\n".join(str(thought[k]) for k in ("summary", "content") if thought.get(k))
        elif isinstance(thought, str):
            yield thought


def _other_part(part: object) -> str:
    """The text of a part that is an object, such as a transcript; else a mark for what it is."""
    kind = part.get("content_type", "part") if isinstance(part, dict) else "part"
    if isinstance(part, dict) and isinstance(part.get("text"), str):
        return str(part["text"])
    return "[image]" if kind == "image_asset_pointer" else f"[{kind}]"


def _attached(message: Node) -> Iterator[str]:
    """A mark for each file that came with a message; images have one among the parts."""
    files = object_of(message.get("metadata")).get("attachments")
    for file in files if isinstance(files, list) else ():
        name, kind = (object_of(file).get(key) for key in ("name", "mime_type"))
        if isinstance(name, str) and not str(kind).startswith("image/"):
            yield f"[{name}]"
