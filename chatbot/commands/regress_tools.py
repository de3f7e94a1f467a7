"""What `regress` does without running a suite: compare two runs, record a chat as a case."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, get_args

from chatbot.console import Console
from chatbot.errors import InputError
from chatbot.interchange import read_conversation
from chatbot.messages import Conversation
from chatbot.parts import open_store
from chatbot.records import to_plain
from chatbot.regression.compare import Change, Comparison, compare
from chatbot.regression.outputs import write_text
from chatbot.regression.record import case_from
from chatbot.regression.report_text import Paint, comparison_lines
from chatbot.regression.results import load_run
from chatbot.settings import Settings


def compare_files(files: Sequence[str], console: Console, *, as_json: bool) -> int:
    """Two saved runs side by side; 1 when something regressed."""
    if len(files) != 2:
        raise InputError("compare takes two runs, such as: regress compare A.json B.json")
    before, after = (load_run(Path(file)) for file in files)
    comparison = compare(before, after)
    if as_json:
        console.json(comparison_record(comparison))
    else:
        print_lines(comparison_lines(comparison, paint_for(console)), console)
    return int(comparison.regressed)


def record_case(
    names: Sequence[str], output: Path | None, settings: Settings, console: Console
) -> int:
    """A chat as a suite with one case, on stdout or in a file."""
    if len(names) != 1:
        raise InputError("record takes one chat: a JSON file, or the id or title of a chat.")
    text = case_from(_conversation(names[0], settings))
    if output is None:
        console.result(text, end="")
        return 0
    if output.exists():
        raise InputError(f"{output} is there already; choose another name.")
    write_text(output, text)
    console.note(f"{output} is written; edit it, then run: python -m chatbot regress {output}")
    return 0


def _conversation(name: str, settings: Settings) -> Conversation:
    if Path(name).is_file():
        return read_conversation(Path(name))
    with closing(open_store(settings)) as store:
        chats = store.list_conversations()
        ids = [chat.id for chat in chats if name in (chat.id, chat.title)]
        if not ids:
            raise InputError(f"There is no file and no chat {name!r}; give its id or whole title.")
        return store.load_whole(ids[0])


def comparison_record(comparison: Comparison) -> dict[str, Any]:
    """A comparison as its JSON object."""
    record: dict[str, Any] = to_plain(comparison)
    for change in get_args(Change):
        record[change.replace(" ", "_")] = [row.id for row in comparison.of(change)]
    return record


def print_lines(lines: Iterable[str], console: Console) -> None:
    for line in lines:
        console.result(line)


def paint_for(console: Console) -> Paint:
    """Colours on a terminal only, and none for who has asked for none (no-color.org)."""
    return Paint(console.out.isatty() and not os.environ.get("NO_COLOR"))
