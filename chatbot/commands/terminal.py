"""The chat in the terminal: what each line does. Knows no pipe and no signal but Ctrl-C."""

from __future__ import annotations

import os
import shlex
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

from chatbot.chat_events import ChatEvent
from chatbot.commands.common import (
    checked_text,
    counted,
    note_demo,
    read_documents,
    split_missing,
    wait_for_engine,
)
from chatbot.commands.library_hints import found_by_name, unused_here
from chatbot.commands.memory_table import memory_table
from chatbot.commands.replying import CUT, ctrl_c_sets, follow
from chatbot.commands.table import sources_text, trace_table
from chatbot.console import Console
from chatbot.errors import EngineError, InputError
from chatbot.messages import Conversation, PromptTrace
from chatbot.records import new_id
from chatbot.services import Services
from chatbot.store_changes import NOTHING, Changes
from retrieval.types import DocumentInfo, Lost

LISTED = 20

HELP = """\
/new             start a new conversation
/list            show the conversations; /open N goes on with one of them
/retry           answer the last question again
/context [TEXT]  show the prompt of the last reply, or the one that TEXT would have
/documents       show the documents of this conversation
/memory          show what the model, the caches of chats and the process take
/add PATH...     answer from these files and folders, or documents of the library, too
/quit            leave (or Ctrl-D); Ctrl-C stops a reply
A line that begins with // is a question that begins with /."""


class NoSuchCommandError(InputError):
    """A mistyped command: nothing was asked, and nothing has failed."""


class Leave(Exception):
    """The user wants to leave."""


class Terminal:
    """One person at one terminal. A conversation is stored from its first question on."""

    def __init__(self, services: Services, console: Console) -> None:
        self._services = services
        self._console = console
        self._conversation_id: str | None = None
        self.interrupted = False
        """Ctrl-C was pressed, and no line has been entered since."""
        self._commands: dict[str, Callable[[str], None]] = {
            "help": lambda _: console.result(HELP),
            "new": self._new,
            "list": self._list,
            "open": self._open,
            "retry": self._retry,
            "context": self._context,
            "documents": self._documents,
            "memory": self._memory,
            "add": self._add,
            "quit": self._quit,
        }

    def greet(self) -> None:
        settings, info = self._services.settings, self._services.engine.info
        model = settings.model
        if settings.engine_url:
            about = ", tokens are estimated" if info.details.get("estimated") else ""
            model = f"{info.model} at {info.details.get('server')} ({info.device}{about})"
        self._console.note(f"Model: {model}. /help explains the commands.")
        note_demo(self._services.settings, self._console)

    def handle(self, line: str) -> None:
        """One line: a command, or a question. Raises Leave, and errors with their sentence."""
        self.interrupted = False
        text = line.strip()
        if not text:
            return
        if text.startswith("/") and not text.startswith("//"):
            name, _, rest = text[1:].partition(" ")
            if name not in self._commands:
                raise NoSuchCommandError(
                    f"There is no command /{name}; /help shows those there are."
                )
            self._commands[name](rest.strip())
            return
        question = checked_text(text[1:] if text.startswith("//") else text, "The question")
        wait_for_engine(self._services.engine, self._console)
        self._reply(lambda stop: self._asked(question, stop))

    def _asked(self, question: str, stop: threading.Event) -> Iterator[ChatEvent]:
        """The reply, in a conversation that begins only when the first question is taken."""
        cid = self._conversation_id or new_id()
        changes = NOTHING if self._conversation_id else Changes(new=Conversation(cid))
        reply = self._services.chat.reply(cid, question, stop=stop, changes=changes)
        with closing(reply) as events:  # type: ignore[type-var]
            for event in events:
                self._conversation_id = cid
                yield event

    def _reply(self, start: Callable[[threading.Event], Iterator[ChatEvent]]) -> None:
        stop = threading.Event()
        with ctrl_c_sets(stop):
            turn = follow(start(stop), self._console, streamed=True)
        self.interrupted = stop.is_set()
        for line in sources_text(turn):
            self._console.result(line)
        if turn.finish == "cancelled":
            self._console.note("(stopped)")
        elif turn.finish == "length":
            self._console.note(CUT)
        elif turn.finish == "memory" and turn.reply:
            self._console.note("(stopped by memory; the reply so far is kept, /retry asks again)")
        elif turn.finish in ("error", "memory"):
            raise EngineError("The reply failed; /retry asks again.")

    def _conversation(self) -> str:
        if self._conversation_id is None:
            self._conversation_id = self._services.store.create_conversation().id
        return self._conversation_id

    def _new(self, rest: str) -> None:
        self._conversation_id = None
        self._console.note("A new conversation.")

    def _list(self, rest: str) -> None:
        infos = self._services.store.list_conversations()
        for number, info in enumerate(infos[:LISTED], start=1):
            mark = "*" if info.id == self._conversation_id else " "
            title = info.title or "(no title)"
            self._console.result(f"{mark}{number:>3}  {title}  ({counted(info.turns, 'turn')})")
        if not infos:
            self._console.note("There are no conversations yet.")

    def _open(self, rest: str) -> None:
        infos = self._services.store.list_conversations()[:LISTED]
        if not rest.isdecimal() or not 1 <= int(rest) <= len(infos):
            raise InputError("Give the number of a conversation in /list, such as /open 1.")
        info = infos[int(rest) - 1]
        self._conversation_id = info.id
        for turn in self._services.store.load(info.id).turns[-2:]:
            self._console.result(f"> {turn.question}\n{turn.reply}")
        self._console.note(f"Opened: {info.title or '(no title)'}")

    def _retry(self, rest: str) -> None:
        if self._conversation_id is None:
            raise InputError("There is no question to answer again; type one first.")
        wait_for_engine(self._services.engine, self._console)
        conversation_id = self._conversation_id
        self._reply(lambda stop: self._services.chat.retry(conversation_id, stop=stop))

    def _context(self, rest: str) -> None:
        if rest:
            wait_for_engine(self._services.engine, self._console)
            trace = self._trace_of(rest)
        else:
            turns = self._loaded().turns if self._conversation_id else ()
            shown = self._services.store.load_trace(turns[-1].id) if turns else None
            if shown is None:
                raise InputError("There is no reply yet; /context TEXT shows what TEXT would see.")
            trace = shown
        self._console.result(trace_table(trace))

    def _trace_of(self, question: str) -> PromptTrace:
        chat = self._services.chat
        if self._conversation_id is not None:
            return chat.context(self._conversation_id, question)
        return chat.builder.build(Conversation(id=new_id()), question, chat.budget()).trace

    def _documents(self, rest: str) -> None:
        ids = self._loaded().document_ids if self._conversation_id else ()
        stored = self._services.library.documents()
        infos = [info for info in stored if info.id in ids]
        lost = self._services.library.store.lost([info.id for info in infos]) if infos else Lost()
        for info in infos:
            about = "not searchable" if info.id in lost.ids else counted(info.chunks, "chunk")
            self._console.result(f"  {info.name}  ({about})")
        if lost.ids:
            self._console.note(lost.sentence)
        if not infos:
            self._console.note("This conversation has no documents; /add PATH adds some.")
        unused = unused_here(stored, ids)
        if unused:
            self._console.note(unused)

    def _memory(self, rest: str) -> None:
        titles = {info.id: info.title for info in self._services.store.list_conversations()}
        is_elsewhere = bool(self._services.settings.engine_url)
        figures = self._services.engine.memory()
        self._console.result(memory_table(figures, titles, is_elsewhere=is_elsewhere))

    def _add(self, rest: str) -> None:
        if not rest:
            raise InputError("Name files or folders, such as /add report.pdf.")
        stored = self._services.library.documents()
        # A whole name of the library needs no quotes; a file of that name is newer.
        named = {} if Path(rest).exists() else found_by_name(stored, rest)
        added = named or self._read(_paths(rest), stored)
        conversation = self._loaded()
        together = dict.fromkeys((*conversation.document_ids, *added.values()))
        self._services.store.set_documents(conversation.id, list(together))
        self._console.note(f"Added: {', '.join(added)}")

    def _read(self, paths: list[Path], stored: list[DocumentInfo]) -> dict[str, str]:
        """Documents of the library by their names, files and folders by their paths; ids by name.

        Raises InputError when there is none of them.
        """
        there, missing = split_missing(paths)
        found = {str(one.path): found_by_name(stored, str(one.path)) for one in missing}
        lost = [one.text for one in missing if not found[str(one.path)]]
        if not there and len(lost) == len(missing):
            raise InputError(" ".join(lost))
        for text in lost:
            self._console.note(text)
        added = read_documents(self._services.library, there, self._console) if there else {}
        for named in found.values():
            added |= named
        return added

    def _loaded(self) -> Conversation:
        return self._services.store.load(self._conversation())

    def _quit(self, rest: str) -> None:
        raise Leave


def _paths(rest: str) -> list[Path]:
    try:
        parts = shlex.split(rest, posix=os.name != "nt")
    except ValueError as error:
        raise InputError("A quote is open; write /add 'my report.pdf'.") from error
    return [Path(part.strip("\"'")) for part in parts]
