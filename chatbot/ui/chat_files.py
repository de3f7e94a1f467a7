"""Chats out of files that a browser has sent. Knows no page and no store."""

from __future__ import annotations

from chatbot.errors import InputError
from chatbot.import_chatgpt import ChatFile
from chatbot.import_markdown import looks_like_chat, not_read, parse_markdown
from chatbot.interchange import read_conversations
from chatbot.ui.inbox import Waiting


def read_chats(file: Waiting) -> ChatFile:
    """All chats of a JSON export, of ChatGPT's export, or of Markdown that was saved here, and
    why some were left out.

    Raises InputError with a sentence that does not name the file.
    """
    if file.name.lower().endswith((".md", ".markdown", ".txt")):
        return _saved_here(_text_of(file))
    try:
        return read_conversations(file.path)
    except InputError as error:
        text = _text_of(file)
        if looks_like_chat(text):
            return _saved_here(text)
        # The file lies under a name that means nothing to a person.
        raise InputError(str(error).removeprefix(f"{file.path}: ")) from error


def _saved_here(text: str) -> ChatFile:
    return ChatFile((parse_markdown(text),), changed=not_read(text))


def _text_of(file: Waiting) -> str:
    try:
        # Not read_text, which takes carriage returns within a message for ends of its lines.
        return file.path.read_bytes().decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError("the file is not a text in UTF-8.") from error
