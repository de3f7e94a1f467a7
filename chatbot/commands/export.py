"""`export`: one chat as JSON that `import` reads back, or as Markdown, on stdout."""

from __future__ import annotations

import argparse
import json
from contextlib import closing

from chatbot.console import Console
from chatbot.errors import InputError
from chatbot.export_markdown import as_markdown
from chatbot.export_messages import export_conversation
from chatbot.language import detect
from chatbot.messages import Conversation
from chatbot.parts import open_store
from chatbot.settings import Settings
from chatbot.store import Store


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("conversation", metavar="CONVERSATION", help="the chat's id, or its title")
    parser.add_argument("--format", choices=("json", "markdown"), default="json")


def run(arguments: argparse.Namespace, settings: Settings, console: Console) -> int:
    """Raises InputError for a chat that is not there, or a title that several have."""
    with closing(open_store(settings)) as store:
        chat = store.load_whole(_id_of(store, arguments.conversation))
    if arguments.format == "json":
        console.result(json.dumps(export_conversation(chat), ensure_ascii=False, indent=1))
    else:
        console.result(as_markdown(chat, _language(chat, settings)), end="")
    return 0


def _id_of(store: Store, wanted: str) -> str:
    infos = store.list_conversations()
    if any(info.id == wanted for info in infos):
        return wanted
    titled = [info.id for info in infos if info.title == wanted]
    if len(titled) > 1:
        raise InputError(
            f"{len(titled)} chats have this title; name one by its id: {titled[0]}, ..."
        )
    if not titled:
        raise InputError(f"There is no chat {wanted!r}; 'import' and the page show ids and titles.")
    return titled[0]


def _language(chat: Conversation, settings: Settings) -> str:
    if settings.language != "auto":
        return settings.language
    return detect(chat.turns[0].question if chat.turns else chat.title)
