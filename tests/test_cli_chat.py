"""The chat in the terminal, over a pipe."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cli import KEYWORDS_ONLY, Outcome, UseScript, inside

from chatbot.commands.memory_table import memory_table
from chatbot.engine.base import Engine, EngineEvent, Finished
from chatbot.engine.lazy import LazyEngine, LoadHandle
from chatbot.engine.scripted import ScriptedEngine
from chatbot.errors import ModelError
from chatbot.messages import MemoryFigures, Notice


@pytest.fixture
def piped(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, scripted: UseScript
) -> Callable[..., Outcome]:
    """Run `chat` with these lines on its input."""
    scripted(lambda prompt, ids: "An answer.")

    def run(*lines: object) -> Outcome:
        monkeypatch.setattr(sys, "stdin", io.StringIO("".join(f"{line}\n" for line in lines)))
        return inside("chat", "--data-dir", tmp_path / "data", *KEYWORDS_ONLY)

    return run


def test_each_line_of_a_pipe_is_a_question(piped: Callable[..., Outcome]) -> None:
    outcome = piped("First?", "", "둘째?", "//third?", "/list")
    assert outcome.code == 0, outcome.err
    assert outcome.out.count("An answer.") == 3
    assert "First?  (3 turns)" in outcome.out


def test_the_commands_of_the_chat(piped: Callable[..., Outcome], folder: Path) -> None:
    outcome = piped(
        *("/help", "Hello?", "/retry", "/context", "/context And then?"),
        *(f"/add '{folder / 'tower.txt'}'", "/documents", "/new", "/list", "/open 1", "/quit"),
        "never asked",
    )
    assert outcome.code == 0, outcome.err
    assert "/retry " in outcome.out
    asked, again, in_a_prompt, opened = 1, 1, 1, 1
    assert outcome.out.count("An answer.") == asked + again + in_a_prompt + opened
    assert "tokens for: Hello?" in outcome.out and "tokens for: And then?" in outcome.out
    assert "tower.txt  (1 chunk)" in outcome.out
    assert "never asked" not in outcome.out


def test_a_question_that_is_refused_begins_no_conversation(
    piped: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CHATBOT_SYSTEM_PROMPT", "word " * 9000)
    outcome = piped("First?", "/list")
    assert "too many" in outcome.err
    assert "There are no conversations yet." in outcome.out + outcome.err


def test_memory_is_shown(piped: Callable[..., Outcome]) -> None:
    outcome = piped("A lamp?", "/memory")
    assert outcome.code == 0, outcome.err
    rows = {line.split("  ")[0] for line in outcome.out.splitlines()}
    assert {"weights", "caches", "work", "process"} <= rows
    assert "  A lamp?" in outcome.out  # its cache, by its title


def test_memory_of_a_model_elsewhere_is_the_servers() -> None:
    text = memory_table(
        MemoryFigures(process_bytes=1 << 30, process_peak_bytes=1 << 30), {}, is_elsewhere=True
    )
    assert "server holds the model" in text and "weights" not in text and "0 MiB" not in text


def test_a_missing_file_does_not_keep_the_others_out(
    piped: Callable[..., Outcome], folder: Path
) -> None:
    outcome = piped(f"/add '{folder / 'tower.txt'}' none.txt", "/documents", "/list")
    assert "There is no file or folder none.txt; check the path." in outcome.err
    assert "tower.txt  (1 chunk)" in outcome.out
    assert outcome.code == 0


def test_documents_of_the_library_are_told_and_added_by_name(
    piped: Callable[..., Outcome], scripted: UseScript, tmp_path: Path
) -> None:
    (tmp_path / "Anna's plan.txt").write_text("The roof is new.", encoding="utf-8")
    data = ("--data-dir", tmp_path / "data", *KEYWORDS_ONLY)
    assert inside("ingest", tmp_path / "Anna's plan.txt", *data).code == 0
    outcome = piped("/documents", "/add Anna's plan.txt", "/documents")
    assert outcome.code == 0, outcome.err
    assert "The library has 1 document that this chat does not use (Anna's plan.txt)" in outcome.err
    assert outcome.err.count("does not use") == 1
    assert outcome.out.count("Anna's plan.txt  (1 chunk)") == 1
    scripted([])
    both = piped('/add "Anna\'s plan.txt" none.txt', "/documents")
    assert "none.txt; check" in both.err and "Anna's plan.txt  (1 chunk)" in both.out
    scripted(lambda prompt, ids: "An answer.")
    asked = inside("ask", "Why?", *data)
    assert "The library has 1 document, which ask does not read" in asked.err


@pytest.mark.parametrize("line", ["/context What?", "/documents", "/add none.txt", "/help"])
def test_no_conversation_is_kept_before_the_first_question(
    line: str, piped: Callable[..., Outcome]
) -> None:
    outcome = piped(line, "/list", "Hello?", "/list")
    assert "There are no conversations yet." in outcome.err
    assert "Hello?  (1 turn)" in outcome.out


def test_a_model_that_cannot_be_loaded_ends_the_chat_before_the_first_line(
    piped: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(handle: LoadHandle) -> Engine:
        raise ModelError("There is no model 'demoo'; check the name.")

    monkeypatch.setattr("chatbot.services.load_engine", lambda settings: LazyEngine(fail))
    outcome = piped("/list")
    assert (outcome.code, outcome.out) == (1, "")
    assert outcome.err.endswith("chatbot: There is no model 'demoo'; check the name.\n")


@pytest.mark.parametrize(
    ("line", "named"),
    [
        pytest.param("/foo", "/help", id="unknown"),
        pytest.param("/retry", "no question", id="nothing_to_retry"),
        pytest.param("/context", "no reply yet", id="no_trace"),
        pytest.param("/open 5", "/list", id="no_such_conversation"),
        pytest.param("/open ²", "/list", id="no_number"),
        pytest.param("/add", "/add", id="nothing_to_add"),
        pytest.param("/add none.txt", "none.txt", id="missing_file"),
        pytest.param("/add 'open", "/add", id="open_quote"),
    ],
)
def test_a_wrong_command_is_one_sentence_and_the_chat_goes_on(
    line: str, named: str, piped: Callable[..., Outcome]
) -> None:
    outcome = piped(line, "Hello?")
    assert outcome.code == (0 if line == "/foo" else 1)
    assert outcome.out == "An answer.\n"
    assert named in outcome.err and "Traceback" not in outcome.err


def test_a_reply_stopped_by_memory_is_shown_as_that(
    piped: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What happened to a reply comes with its end; the reply so far is there and no failure."""
    generate = ScriptedEngine.generate
    steps = Notice("memory_evict_idle", "Caches were dropped."), Notice("memory_stopped", "Gone.")

    def short(self: ScriptedEngine, *given: Any, **options: Any) -> Iterator[EngineEvent]:
        for event in generate(self, *given, **options):
            ended = isinstance(event, Finished)
            yield replace(event, finish="memory", notices=steps) if ended else event

    monkeypatch.setattr(ScriptedEngine, "generate", short)
    outcome = piped("Hello?")
    assert outcome.out == "An answer.\n"
    assert [line for line in outcome.err.splitlines() if "Caches" in line or "Gone" in line] == [
        "Caches were dropped.",
        "Gone.",
    ]
    assert "stopped by memory" in outcome.err and "failed" not in outcome.err
    assert outcome.code == 0
