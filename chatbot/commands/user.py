"""`user`: who may open the page in a network, in a file with hashed passwords."""

from __future__ import annotations

import argparse
import getpass
import sys
from pathlib import Path

from chatbot.console import Console
from chatbot.errors import InputError
from chatbot.settings import Settings
from chatbot.users import add_user, read_users, write_users

FILE = "users.txt"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", choices=("add", "remove", "list"))
    parser.add_argument("name", nargs="?", metavar="NAME")
    parser.add_argument(
        "--file", type=Path, default=None, help="default: --auth, or users.txt in the data folder"
    )


def run(arguments: argparse.Namespace, settings: Settings, console: Console) -> int:
    """The password is asked for, or read from standard input. Raises InputError."""
    path: Path = arguments.file or settings.auth or settings.data_dir / FILE
    if arguments.action == "list":
        for name in read_users(path):
            console.result(name)
        return 0
    if not arguments.name:
        raise InputError("Name a user, as in 'user add anna'.")
    if arguments.action == "add":
        add_user(path, arguments.name, _password())
        console.note(f"Added {arguments.name}; open the page with --auth {path}.")
        return 0
    users = read_users(path)
    if users.pop(arguments.name, None) is None:
        raise InputError(f"There is no user {arguments.name!r} in {path}.")
    write_users(path, users)
    console.note(
        f"Removed {arguments.name}, who is logged out at once; API keys made for this name stay "
        "until 'key revoke'."
    )
    return 0


def _password() -> str:
    if not sys.stdin.isatty():
        return sys.stdin.readline().rstrip("\r\n")
    password = getpass.getpass("Password: ")
    if getpass.getpass("Again: ") != password:
        raise InputError("The two passwords differ; try again.")
    return password
