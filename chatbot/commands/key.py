"""`key`: make, list and revoke the keys of the API (see `serve --api`)."""

from __future__ import annotations

import argparse
from pathlib import Path

from chatbot.api.keys import FILE, USUAL_LIMITS, Key, Limits, add_key, read_keys, revoke_key
from chatbot.console import Console
from chatbot.errors import InputError
from chatbot.records import now_text
from chatbot.settings import Settings
from chatbot.users import read_users

_LIMITS = {
    "requests_per_minute": "most requests in any 60 seconds",
    "tokens_per_day": "most tokens of prompts and replies on one day (UTC)",
    "parallel": "most requests at the same time",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", choices=("add", "list", "revoke"))
    parser.add_argument("name", nargs="?", metavar="NAME")
    parser.add_argument(
        "--user",
        default="",
        metavar="USER",
        help="whose chats and documents the key reaches, such as a name of the page's --auth file; "
        "any other name is a person of its own (default: those of a page without login)",
    )
    for name, text in _LIMITS.items():
        default = getattr(USUAL_LIMITS, name)
        parser.add_argument(
            "--" + name.replace("_", "-"),
            type=_count,
            default=default,
            metavar="N",
            help=f"{text}; 0: no limit (default: {default})",
        )


def run(arguments: argparse.Namespace, settings: Settings, console: Console) -> int:
    """A new key is printed once; nobody can read it again. Raises InputError."""
    path = settings.api_keys or settings.data_dir / FILE
    if arguments.action == "list":
        keys = _listed(path)
        for key in keys:
            console.result(_shown(key))
        if not keys:
            console.note("There is no key yet; 'key add NAME' makes one.")
        return 0
    if not arguments.name:
        raise InputError(f"Name the key, as in 'key {arguments.action} backup-bot'.")
    if arguments.action == "revoke":
        revoke_key(path, arguments.name)
        console.note(f"Revoked {arguments.name}; a running server refuses it from now on.")
        return 0
    limits = Limits(**{name: getattr(arguments, name) for name in _LIMITS})
    made = add_key(path, arguments.name, user=arguments.user, limits=limits, created=now_text())
    console.result(made)
    console.note("This is the only time that the key is shown; only its hash is kept.")
    if arguments.user and settings.auth and arguments.user not in read_users(settings.auth):
        console.note(
            f"{settings.auth} has no user {arguments.user!r}: the key has chats and documents of "
            "its own under this name."
        )
    named = f" --api-keys {path}" if settings.api_keys else ""
    console.note(
        f"Programs use it as their API key while the page runs with --api{named}; a running server "
        "takes it at once."
    )
    return 0


def _listed(path: Path) -> list[Key]:
    return list(read_keys(path).values()) if path.exists() else []


def _shown(key: Key) -> str:
    parts = [key.name, f"user={key.user or '-'}"]
    parts += [f"{name}={getattr(key.limits, name) or '-'}" for name in _LIMITS]
    return "  ".join([*parts, f"created={key.created[:19]}"])


def _count(text: str) -> int:
    if not text.isdigit() or int(text) > 1_000_000_000:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of 0 or more")
    return int(text)
