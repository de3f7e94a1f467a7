"""`ingest`: reads documents into the library of the data folder, one result line per file."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from contextlib import ExitStack
from itertools import chain
from pathlib import Path

from chatbot.commands.common import (
    add_json,
    check_embedder,
    counted,
    ingest_record,
    note_progress,
    split_missing,
)
from chatbot.console import Console
from chatbot.errors import InputError, StoreError
from chatbot.parts import (
    count_with,
    load_model_tokenizer,
    make_private,
    open_library,
    open_store,
)
from chatbot.records import to_plain
from chatbot.settings import Settings
from chatbot.store import Store
from retrieval.load import document_name
from retrieval.pipeline import Library
from retrieval.types import IngestReport


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("paths", nargs="*", type=Path, metavar="PATH", help="files and folders")
    parser.add_argument("--list", action="store_true", help="show the documents of the library")
    parser.add_argument("--remove", metavar="NAME", help="delete a document, by its name or id")
    add_json(parser)


def run(arguments: argparse.Namespace, settings: Settings, console: Console) -> int:
    """Exit code 1 when files were given and none of them could be read."""
    if not (arguments.paths or arguments.list or arguments.remove):
        raise InputError("Nothing to ingest; name files or folders, or use --list or --remove.")
    there, missing = split_missing(arguments.paths)
    if missing and not there:
        raise InputError(missing[0].text)  # a few missing among others get a line each instead
    if there:
        console.note("Reading the documents…")
    make_private(settings.data_dir)
    count = count_with(load_model_tokenizer(settings, progress=console.model_progress))
    with ExitStack() as stack:
        is_changed = arguments.paths or arguments.remove
        chats = _claims_at(settings, console, stack) if is_changed else None
        library = open_library(settings, count, progress=console.model_progress, chats=chats)
        stack.callback(library.close)
        if arguments.remove:
            _remove(library, chats, arguments.remove, console)
        code = 0
        if arguments.paths:
            check_embedder(library)
            reports = library.ingest_tree(there, progress=note_progress(console))
            lost = [IngestReport(str(m.path), "error", message=m.text) for m in missing]
            code = _report(chain(reports, lost), console, as_json=arguments.json)
        if arguments.list:
            _list(library, console, as_json=arguments.json)
    return code


def _claims_at(settings: Settings, console: Console, stack: ExitStack) -> Store | None:
    """The chats, by which programs at one library tell each other what they read; None where they
    are away: then a file may be read twice, and is all the same there once."""
    try:
        store = open_store(settings)
    except StoreError as error:
        console.note(f"Other programs are not told which files are read here. {error}")
        return None
    stack.callback(store.close)
    return store


def _report(reports: Iterable[IngestReport], console: Console, *, as_json: bool) -> int:
    n_files, read = 0, False
    for n_files, report in enumerate(reports, start=1):  # noqa: B007
        read = read or report.status != "error"
        if as_json:
            console.json(ingest_record(report))
        else:
            chunks = f"{counted(report.chunks, 'chunk')}. " if report.status == "indexed" else ""
            console.result(f"{report.status:<10} {report.file}  {chunks}{report.message}".rstrip())
    if n_files == 0:
        console.note("There is no document of a known format in what was named.")
    return 0 if read else 1


def _list(library: Library, console: Console, *, as_json: bool) -> None:
    documents = library.documents()
    if not documents:
        console.note("The library is empty; 'ingest PATH' adds files and folders.")
    for info in documents:
        if as_json:
            console.json(to_plain(info))
        else:
            pages = f"{counted(info.pages, 'page')}, " if info.pages else ""
            console.result(f"{info.id}  {info.name}  ({pages}{counted(info.chunks, 'chunk')})")


def _remove(library: Library, chats: Store | None, name: str, console: Console) -> None:
    names = {name, document_name(name)}
    found = [info for info in library.documents() if names & {info.name, info.id}]
    if not found:
        raise InputError(f"There is no document {name!r} in the library; --list shows them.")
    for info in found:
        library.delete(info.id)
        if chats is not None:
            chats.remove_document_everywhere(info.id)
        console.note(f"Removed {info.name}.")
