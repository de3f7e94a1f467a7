"""The command line: errors in one line, exit codes, and results on stdout only."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
import time
from itertools import repeat
from pathlib import Path
from queue import Queue

import pytest
from cli import ROOT, inside, program

from chatbot.commands import COMMANDS
from chatbot.console import Console
from chatbot.engine.again import Again, server_may_come
from chatbot.engine.base import Engine
from chatbot.engine.lazy import LazyEngine, LoadHandle
from chatbot.engine.scripted import ScriptedEngine
from chatbot.errors import ModelError, NoAnswerError
from chatbot.services import Services
from chatbot.settings import Settings


def assert_one_line_error(err: str, *named: str) -> None:
    assert err.startswith("chatbot: ")
    assert err.count("\n") == 1 and err.endswith("\n")
    assert "Traceback" not in err
    for word in named:
        assert word in err


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        pytest.param(("inges",), "ingest", id="unknown_command"),
        pytest.param(("ask",), "QUESTION", id="missing_argument"),
        pytest.param(("ask", " "), "empty", id="empty_question"),
        pytest.param(("ask", "x", "--modle", "y"), "--modle", id="unknown_flag"),
        pytest.param(("ask", "x", "--mod", "y"), "--mod", id="no_abbreviations"),
        pytest.param(("ask", "x", "--documents", "none.txt"), "none.txt", id="missing_document"),
        pytest.param(("ask", "x", "--port", "99999"), "port", id="impossible_setting"),
        pytest.param(("ingest",), "files or folders", id="nothing_to_ingest"),
        pytest.param(("ingest", "none.pdf"), "none.pdf", id="missing_file"),
        pytest.param(("context",), "--question", id="no_question"),
        pytest.param(
            ("context", "--question", "x", "--questions", "y"), "--question", id="two_sources"
        ),
        pytest.param(
            ("context", "--question", "x", "--prompt-tokens", "0"),
            "--prompt-tokens",
            id="no_room_at_all",
        ),
        pytest.param(
            ("context", "--question", "x", "--prompt-tokens", "many"),
            "--prompt-tokens",
            id="no_number",
        ),
        pytest.param(
            ("context", "--question", "x", "--tokenizer", "none.model"),
            "none.model",
            id="missing_tokenizer",
        ),
        pytest.param(
            ("context", "--question", "x", "--conversation", "none.json"),
            "none.json",
            id="missing_conversation",
        ),
        pytest.param(("serve", "extra"), "extra", id="stray_argument"),
        pytest.param(("--model", "x", "chat"), "Put the command first", id="command_last"),
        pytest.param(("--port", "1", "extra"), "unrecognized", id="stray_without_a_command"),
    ],
)
def test_wrong_input_is_one_line_and_exit_code_2(arguments: tuple[str, ...], named: str) -> None:
    outcome = inside(*arguments)
    assert outcome.code == 2
    assert outcome.out == ""
    assert_one_line_error(outcome.err, named)


def test_a_fault_of_the_program_is_one_line_and_exit_code_1(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken(*_: object) -> int:
        raise KeyError("lost")

    monkeypatch.setattr("chatbot.commands.fetch.run", broken)
    outcome = inside("fetch")
    assert outcome.code == 1
    assert_one_line_error(outcome.err, "KeyError", "lost", "--debug")
    assert "Traceback" in inside("fetch", "--debug").err


@pytest.mark.parametrize(
    ("error", "code"),
    [(KeyboardInterrupt(), 130), (BrokenPipeError(), 141)],
    ids=["ctrl_c", "reader_gone"],
)
def test_ctrl_c_and_a_reader_that_has_gone_are_quiet(
    error: BaseException, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def raising(*_: object) -> int:
        raise error

    monkeypatch.setattr("chatbot.commands.fetch.run", raising)
    outcome = inside("fetch")
    assert (outcome.code, outcome.out, outcome.err) == (code, "", "")


def test_what_a_library_prints_does_not_mix_with_the_result(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def chatty(_arguments: object, _settings: Settings, console: Console) -> int:
        print("stray")
        console.json({"답": "네"})
        return 0

    monkeypatch.setattr("chatbot.commands.fetch.run", chatty)
    outcome = inside("fetch")
    assert outcome.out == '{"답": "네"}\n'
    assert outcome.err == "stray\n"


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_command_explains_itself(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        inside(name, "--help")
    assert caught.value.code == 0
    text = " ".join(capsys.readouterr().out.split())
    assert COMMANDS[name] in text
    for setting in Settings.model_fields:
        assert f"--{setting.replace('_', '-')}" in text


@pytest.mark.parametrize("flag", ["--help", "-h"])
def test_help_without_a_command_lists_the_commands_first(flag: str) -> None:
    outcome = inside(flag)
    assert (outcome.code, outcome.err) == (0, "")
    lines = outcome.out.splitlines()
    first = lines.index("commands:") + 1
    assert [line.split()[0] for line in lines[first : first + len(COMMANDS)]] == list(COMMANDS)
    assert len(lines) < 25 and "serve --help" in outcome.out


def test_without_a_command_the_page_is_served(monkeypatch: pytest.MonkeyPatch) -> None:
    served: list[Settings] = []

    def serve(_arguments: object, settings: Settings, _console: Console) -> int:
        served.append(settings)
        return 0

    monkeypatch.setattr("chatbot.commands.serve.run", serve)
    for arguments in ((), ("serve",), ("--port", "1234")):
        assert inside(*arguments).code == 0
    assert [settings.port for settings in served] == [7860, 7860, 1234]


@pytest.mark.parametrize("fails", [True, False], ids=["fails", "loads_until_the_end"])
def test_serve_says_once_that_the_model_cannot_be_loaded(
    fails: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    over = threading.Event()

    def load(handle: LoadHandle) -> Engine:
        if not fails:
            over.wait()
        raise ModelError("There is no model 'demoo'; check the name.")

    def page(services: Services) -> None:
        time.sleep(1.0)

    monkeypatch.setattr("chatbot.services.load_engine", lambda settings: LazyEngine(load))
    monkeypatch.setattr("chatbot.ui.server.serve", page)
    monkeypatch.setattr("signal.signal", lambda *_: None)
    outcome = inside("serve", "--embedding-model", "none")
    over.set()
    assert outcome.code == 0
    assert outcome.err.count("There is no model 'demoo'; check the name.") == int(fails)
    assert "closed" not in outcome.err


def test_serve_says_when_a_server_that_was_away_is_there(
    scripted_engine: ScriptedEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_come = threading.Event()
    told: Queue[str] = Queue()

    def load(handle: LoadHandle) -> Engine:
        if not may_come.is_set():
            raise NoAnswerError("No server answers at http://far:1.")
        return scripted_engine

    def page(services: Services) -> None:
        assert told.get(timeout=20) == (
            "chatbot: No server answers at http://far:1. The server is looked for again by itself."
        )
        may_come.set()
        assert told.get(timeout=20) == "chatbot: Replies come from a script."

    def note(self: Console, text: str) -> None:
        if text.startswith("chatbot: "):
            told.put(text)

    engine = LazyEngine(load, again=Again(server_may_come, lambda: repeat(0.01)))
    monkeypatch.setattr("chatbot.services.load_engine", lambda settings: engine)
    monkeypatch.setattr("chatbot.commands.serve._POLL_S", 0.01)
    monkeypatch.setattr("chatbot.ui.server.serve", page)
    monkeypatch.setattr("signal.signal", lambda *_: None)
    monkeypatch.setattr(Console, "note", note)
    assert inside("serve", "--embedding-model", "none").code == 0
    assert told.empty()


def test_app_py_is_the_same_program() -> None:
    outcome = program("inges", module=[str(ROOT / "app.py")])
    assert outcome.code == 2
    assert_one_line_error(outcome.err, "ingest")


def test_output_is_utf_8_in_any_locale(tmp_path: Path) -> None:
    (tmp_path / "없는 것.json").write_text("[", encoding="utf-8")
    outcome = program(
        *("context", "--question", "질문", "--conversation", tmp_path / "없는 것.json"),
        LC_ALL="C",
        PYTHONUTF8="0",
        PYTHONCOERCECLOCALE="0",
        PYTHONIOENCODING="ascii",
    )
    assert outcome.code == 2
    assert "없는 것.json" in outcome.err


def test_an_old_python_and_missing_packages_are_one_sentence(tmp_path: Path) -> None:
    # -S -E: a Python without any installed package.
    bare = program(module=["-S", "-E", str(ROOT / "app.py")])
    assert bare.code == 1
    assert_one_line_error(bare.err, "make run")
    old = "import sys; sys.version_info = (3, 9, 1, 'final', 0); import runpy; "
    start = f"sys.path.insert(0, {str(ROOT)!r}); from chatbot.start import start; start()"
    outcome = program(module=["-c", old + start])
    assert outcome.code == 1
    assert_one_line_error(outcome.err, "3.11", "3.9")


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_a_reader_that_closes_early_gives_no_traceback() -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "chatbot", "--help"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""


def test_the_setup_script_says_when_python_is_too_old(tmp_path: Path) -> None:
    if os.name == "nt" or shutil.which("bash") is None:
        pytest.skip("the set-up script needs bash")
    old = tmp_path / "python-old"
    old.write_text("#!/bin/sh\nexit 1\n", encoding="utf-8")
    old.chmod(0o755)
    done = subprocess.run(
        [str(ROOT / "scripts" / "install.sh"), str(tmp_path / "venv"), "nothing"],
        env={**os.environ, "PYTHON": str(old)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "Python 3.11 or newer is needed" in done.stderr
    assert not (tmp_path / "venv").exists()
