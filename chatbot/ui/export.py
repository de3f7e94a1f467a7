"""Names of the files that chats are saved in. Knows no page."""

from __future__ import annotations

import re

from chatbot.messages import Conversation

_UNSAFE = re.compile(r'[\x00-\x1f<>:"/\\|?*]+')


def file_name(conversation: Conversation, suffix: str) -> str:
    """A name that every file system takes; `suffix` without its dot."""
    name = " ".join(_UNSAFE.sub(" ", conversation.title).split()).strip(" .")[:80]
    return f"{name or 'chat'}.{suffix}"
