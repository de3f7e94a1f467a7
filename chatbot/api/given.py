"""The messages of a request as a conversation with a question at its end. Pure; stores nothing.

Ids of messages and turns say what is in them and before them, so that what is known of a turn (its
tokens, what is searched in it) is found again when the conversation comes back one turn longer.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from chatbot.api.errors import bad
from chatbot.api.shapes import ChatMessage, ChatRequest
from chatbot.import_messages import parse_messages
from chatbot.messages import Conversation, Turn
from chatbot.records import storable

HEADER = "x-conversation-id"
NEW = "new"
ALL_FILES = "all"
_CONVERSATION = re.compile(r"[A-Za-z0-9_-]{1,64}")
_TEXT_PARTS = ("text", "input_text", "output_text")
_INSTRUCTING = ("system", "developer")
_NO_TOOLS = "Tools and functions are not called by this server; leave out what they said."


@dataclass(frozen=True, slots=True)
class Said:
    """One message as it was sent."""

    role: str
    text: str
    name: str | None = None


@dataclass(frozen=True, slots=True)
class Asked:
    """A request taken apart. `file_ids` None: nothing is said of files; `conversation_id` "": the
    messages are the conversation."""

    system: str | None
    earlier: tuple[Said, ...]
    question: str
    conversation_id: str = ""
    file_ids: tuple[str, ...] | None = None
    is_strict: bool = False
    wants_trace: bool = True


def asked(request: ChatRequest, header: str | None) -> Asked:
    """What a request asks. `header` is that of the conversation's id. Raises ApiError."""
    said = [_said(message, f"messages.{n}") for n, message in enumerate(request.messages)]
    n_system = next((n for n, one in enumerate(said) if one.role not in _INSTRUCTING), len(said))
    if n_system == len(said) or said[-1].role != "user":
        raise bad("The last message must be the user's; it is what gets answered.", "messages")
    if not said[-1].text.strip():
        raise bad("The question is empty; send one as text.", f"messages.{len(said) - 1}.content")
    last = said[-1]
    metadata = request.metadata or {}
    return Asked(
        system="\n\n".join(one.text for one in said[:n_system]) if n_system else None,
        earlier=tuple(said[n_system:-1]),
        question=f"{last.name}: {last.text}" if last.name else last.text,
        conversation_id=_conversation_id(metadata.get("conversation_id"), header),
        file_ids=_file_ids(metadata.get("file_ids"), request.messages[-1]),
        is_strict=_one_of(metadata, "history", ("stored", "strict")) == "strict",
        wants_trace=_one_of(metadata, "trace", ("on", "off")) != "off",
    )


def conversation_of(asked: Asked, document_ids: Sequence[str] = ()) -> Conversation:
    """All that was said before the question. Its id is that of its beginning."""
    digest = _digest("", "system", asked.system or "")
    written, opening = [], digest
    for number, one in enumerate(asked.earlier):
        digest = _digest(digest, f"{one.role} {one.name or ''}", one.text)
        opening = digest if number == 0 else opening
        item = {"id": digest, "role": one.role, "content": one.text}
        written.append({**item, "name": one.name} if one.name else item)
    if not asked.earlier:
        opening = _digest(digest, "user ", asked.question)
    parsed = parse_messages({"messages": written, "system": asked.system})
    turns = tuple(replace(turn, id=_turn_id(turn)) for turn in parsed.turns)
    return replace(parsed, id=f"given-{opening}", turns=turns, document_ids=tuple(document_ids))


def differing(asked: Asked, stored: Sequence[Turn]) -> int | None:
    """The place of the first earlier message that is not as it is stored; None if all are. It is
    the number of all earlier messages where what is stored goes on after them.

    Clients may send all of a conversation or only its end. Replies that failed count or not, as
    the client has it.
    """
    sent = [(_side(one.role), one.text.strip()) for one in asked.earlier]
    wholes = [_flat(stored), _flat([t for t in stored if t.finish in ("stop", "length")])]
    if not sent or any(whole[-len(sent) :] == sent for whole in wholes):
        return None
    places = [_first_difference(sent, whole) for whole in wholes]
    return max(places)


def _said(message: ChatMessage, place: str) -> Said:
    if message.role in ("tool", "function") or message.tool_calls or message.function_call:
        raise bad(_NO_TOOLS, place, "unsupported_parameter")
    content = message.content
    if isinstance(content, str):
        return Said(message.role, storable(content), message.name)
    if content is None:
        raise bad("The message has no content; send a text.", f"{place}.content")
    texts = []
    for number, part in enumerate(content):
        where = f"{place}.content.{number}"
        if part.type == "file" and part.file and part.file.file_id and message.role == "user":
            continue
        if part.type not in _TEXT_PARTS:
            sentence = (
                "Only parts of type 'text', and 'file' with the file_id of a file that was sent "
                "to /v1/files, are understood; images and sound are not."
            )
            raise bad(sentence, where, "unsupported_content")
        if part.text is None:
            raise bad("The part has no text.", where)
        texts.append(part.text)
    return Said(message.role, storable("\n".join(texts)), message.name)


def _conversation_id(given: str | None, header: str | None) -> str:
    if given and header and given != header:
        raise bad("The header and metadata name different conversations.", "metadata")
    wanted = given or header or ""
    if wanted and not _CONVERSATION.fullmatch(wanted):
        sentence = "The id of a conversation has up to 64 letters A-Z a-z, digits, - and _."
        raise bad(sentence, "metadata.conversation_id")
    return wanted


def _file_ids(given: str | None, question: ChatMessage) -> tuple[str, ...] | None:
    parts = question.content if isinstance(question.content, list) else []
    attached = [p.file.file_id for p in parts if p.type == "file" and p.file and p.file.file_id]
    if given is None and not attached:
        return None
    named = [one.strip() for one in (given or "").split(",")]
    return tuple(dict.fromkeys(one for one in (*named, *attached) if one))


def _one_of(metadata: dict[str, str], key: str, allowed: tuple[str, ...]) -> str:
    value = metadata.get(key, allowed[0])
    if value not in allowed:
        raise bad(f"metadata.{key} is one of {', '.join(allowed)}.", f"metadata.{key}")
    return value


def _side(role: str) -> Literal["user", "assistant"]:
    """A turn has two sides; later instructions stand on the user's."""
    return "assistant" if role == "assistant" else "user"


def _flat(turns: Sequence[Turn]) -> list[tuple[str, str]]:
    return [
        (message.role, message.content.strip())
        for turn in turns
        for message in (*turn.user, *turn.assistant)
    ]


def _first_difference(sent: Sequence[tuple[str, str]], stored: Sequence[tuple[str, str]]) -> int:
    pairs = zip(sent, stored, strict=False)
    shared = min(len(sent), len(stored))
    return next((n for n, (one, other) in enumerate(pairs) if one != other), shared)


def _turn_id(turn: Turn) -> str:
    return f"turn-{turn.message_ids[-1]}"


def _digest(before: str, who: str, text: str) -> str:
    made = hashlib.sha256(f"{before}\n{who}\n".encode("utf-8", "replace"))
    made.update(text.encode("utf-8", "replace"))
    return made.hexdigest()[:32]
