"""The chat in the terminal, over a pipe."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from cli import KEYWORDS_ONLY, Outcome, UseScript, inside


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
    assert "tower.txt  (1 chunks)" in outcome.out
    assert "never asked" not in outcome.out


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
    assert outcome.code == 1
    assert outcome.out == "An answer.\n"
    assert named in outcome.err and "Traceback" not in outcome.err
