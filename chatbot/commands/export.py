"""`export`: one chat on stdout, or all of them as files; as JSON that `import` reads back, or as
Markdown."""

from __future__ import annotations

import argparse
import json
from contextlib import closing
from pathlib import Path

from chatbot.commands.common import counted
from chatbot.console import Console
from chatbot.errors import InputError
from chatbot.export_markdown import as_markdown
from chatbot.export_messages import export_conversation
from chatbot.language import detect
from chatbot.messages import Conversation
from chatbot.parts import open_store
from chatbot.settings import Settings
from chatbot.store import Store

_SUFFIXES = {"json": "json", "markdown": "md"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument(
        "conversation", nargs="?", metavar="CONVERSATION", help="the chat's id, or its title"
    )
    what.add_argument("--list", action="store_true", help="show the ids and titles of all chats")
    what.add_argument(
        "--all", type=Path, metavar="FOLDER", help="write each chat into a file of a new folder"
    )
    parser.add_argument("--format", choices=tuple(_SUFFIXES), default="json")


def run(arguments: argparse.Namespace, settings: Settings, console: Console) -> int:
    """Raises InputError for a chat that is not there, a title that several have, or a folder in
    use."""
    with closing(open_store(settings)) as store:
        if arguments.list:
            for info in store.list_conversations():
                console.result(f"{info.id}  {counted(info.turns, 'turn')}  {info.title}")
        elif arguments.all:
            n_chats = _write_all(store, arguments.all, arguments.format, settings)
            console.note(f"{counted(n_chats, 'chat')} written to {arguments.all}.")
        else:
            chat = store.load_whole(_id_of(store, arguments.conversation))
            console.result(_text(chat, arguments.format, settings), end="")
    return 0


def _write_all(store: Store, folder: Path, form: str, settings: Settings) -> int:
    """Into a folder of its own, so that no file of another export is taken for one of this."""
    infos = store.list_conversations()
    try:
        folder.mkdir(mode=0o700, parents=True)
    except FileExistsError as error:
        raise InputError(f"{folder} is there already; name a new folder.") from error
    for number, info in enumerate(infos, start=1):
        # Ids and titles may come from elsewhere, so they name no file.
        path = folder / f"chat-{number:05d}.{_SUFFIXES[form]}"
        text = _text(store.load_whole(info.id), form, settings)
        path.write_text(text, encoding="utf-8", newline="\n")
    return len(infos)


def _text(chat: Conversation, form: str, settings: Settings) -> str:
    if form == "json":
        return json.dumps(export_conversation(chat), ensure_ascii=False, indent=1) + "\n"
    return as_markdown(chat, _language(chat, settings))


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
        raise InputError(f"There is no chat {wanted!r}; 'export --list' shows ids and titles.")
    return titled[0]


def _language(chat: Conversation, settings: Settings) -> str:
    if settings.language != "auto":
        return settings.language
    return detect(chat.turns[0].question if chat.turns else chat.title)
