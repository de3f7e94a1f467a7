"""Conversations from JSON files; traces and citations as JSON objects. Knows no engine."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

from chatbot.errors import InputError
from chatbot.import_chatgpt import ChatFile, is_chatgpt, parse_chatgpt
from chatbot.import_messages import parse_messages
from chatbot.messages import Conversation, PromptTrace, Segment
from chatbot.records import storable, to_plain
from retrieval.types import Citation

log = logging.getLogger(__name__)


def read_conversation(path: Path) -> Conversation:
    """A chat from a JSON file; see `parse_messages` for the forms.

    Raises InputError that names the file, and the message where one is at fault.
    """
    try:
        data = _read_json(path)
        if not is_chatgpt(data):
            told: list[str] = []
            conversation = parse_messages(data, told)
            for sentence in told:
                log.warning("%s: %s", path, sentence)
            return conversation
        found = parse_chatgpt(data)
        for sentence in found.changed:
            log.warning("%s: %s", path, sentence)
        held = len(found.chats) + len(found.left_out)
        if held != 1:
            raise InputError(f"it holds {held} chats; only a file with one can be read here.")
    except InputError as error:
        raise InputError(f"{path}: {error}") from error
    return found.chats[0]


def read_conversations(path: Path) -> ChatFile:
    """All chats of a JSON file: one as `read_conversation` takes it, or an export of ChatGPT, of
    which those that cannot be read are named.

    Raises InputError that names the file, also where there is no chat in it.
    """
    try:
        data = _read_json(path)
        told: list[str] = []
        if is_chatgpt(data):
            found = parse_chatgpt(data)
        else:
            found = ChatFile((parse_messages(data, told),), changed=tuple(told))
        if not any(conversation.turns for conversation in found.chats):
            raise InputError("there is no message in it.")
    except InputError as error:
        raise InputError(f"{path}: {error}") from error
    return found


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
        **({"estimated": True} if trace.estimated else {}),
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
        raise InputError(f"the file cannot be read: {reason}.") from error
    except ValueError as error:
        raise InputError(f"the file is not valid JSON in UTF-8: {error}.") from error
    except RecursionError as error:
        raise InputError("the file is nested too deeply for a conversation.") from error
