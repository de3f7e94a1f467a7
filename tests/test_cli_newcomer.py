"""What somebody meets who tries the commands for the first time."""

from __future__ import annotations

import contextlib
import io
import json
import time
from pathlib import Path

import pytest
from cli import inside

from chatbot.engine.base import Engine
from chatbot.engine.lazy import LazyEngine, LoadHandle
from chatbot.errors import ModelError
from chatbot.saved_settings import FILE
from chatbot.services import Services
from chatbot.users import add_user


@pytest.fixture
def no_such_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data folder whose page has chosen a model that is nowhere."""

    def run(*_: object) -> int:
        raise ModelError("org/big is not on this machine.")

    monkeypatch.setattr("chatbot.commands.plan.run", run)
    (tmp_path / FILE).write_text(json.dumps({"model": "org/big"}), encoding="utf-8")
    return tmp_path


def test_a_model_that_was_chosen_on_the_page_is_said_to_be(no_such_model: Path) -> None:
    told = inside("plan", "--data-dir", no_such_model).err
    assert told.startswith("chatbot: org/big is not on this machine. The model org/big was chosen")
    assert str(no_such_model / FILE) in told and "--model demo" in told and told.count("\n") == 1


def test_a_model_that_was_named_otherwise_is_not(
    no_such_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = ("--data-dir", no_such_model)
    assert "the page" not in inside("plan", *folder, "--model", "org/big").err
    assert "the page" not in inside("plan", *folder, "--model", "org/other").err
    monkeypatch.setenv("CHATBOT_MODEL", "org/big")
    assert "the page" not in inside("plan", *folder).err


@pytest.mark.parametrize("command", ["ask", "ingest", "serve"])
def test_the_help_of_a_command_begins_with_its_own_options(command: str) -> None:
    shown = inside_help(command)
    usage = shown[: shown.index("\n\n")]
    assert usage.endswith("[settings]") and "--temperature" not in usage
    assert shown.index("options:") < shown.index("\nsettings:") < shown.index("--temperature")


def inside_help(command: str) -> str:
    out = io.StringIO()
    with contextlib.redirect_stdout(out), pytest.raises(SystemExit):
        inside(command, "-h")
    return out.getvalue()


def test_a_missing_package_names_what_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(*_: object) -> int:
        raise ModuleNotFoundError("No module named 'faiss'", name="faiss")

    monkeypatch.setattr("chatbot.commands.fetch.run", run)
    told = inside("fetch").err
    assert "'faiss'" in told and "make run" in told and ".venv/bin/python" in told


def test_a_flag_with_a_slip_is_answered_with_the_nearest_one() -> None:
    told = inside("serve", "--prot", "7871", "--modell=x").err
    assert "unrecognized arguments: --prot 7871 --modell=x (did you mean --port, --model?)" in told
    assert "did you mean" not in inside("serve", "--qqqqqq").err


def test_a_text_without_quotes_is_explained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "chatbot.toml").write_text("model = demo\n", encoding="utf-8")
    assert 'texts stand in quotes, as in model = "demo".' in inside("fetch").err


def test_a_suite_that_is_not_there_has_no_line(tmp_path: Path) -> None:
    told = inside("regress", tmp_path / "none.yaml").err
    assert "none.yaml: the suite cannot be read" in told and "line" not in told


def test_the_demo_model_is_planned_as_it_runs() -> None:
    plan = json.loads(inside("plan", "--model", "demo", "--json").out)
    wide = json.loads(inside("plan", "--model", "demo", "--window-tokens", "4096", "--json").out)
    assert (plan["chosen"]["window_tokens"], wide["chosen"]["window_tokens"]) == (2048, 4096)


def test_a_key_of_somebody_unknown_is_said_to_be_one(tmp_path: Path) -> None:
    users, data = tmp_path / "users.txt", ("--data-dir", tmp_path)
    add_user(users, "anna", "long enough")
    told = {
        name: inside("key", "add", name, "--user", name, "--auth", users, *data).err
        for name in ("anna", "bob")
    }
    assert "has no user 'bob'" in told["bob"] and "has no user" not in told["anna"]


def test_a_new_key_says_how_it_is_used(tmp_path: Path) -> None:
    made = inside("key", "add", "bot", "--data-dir", tmp_path)
    assert made.code == 0 and "--api;" in made.err and "--api-keys" not in made.err
    own = inside("key", "add", "bot", "--api-keys", tmp_path / "own.txt")
    assert f"--api --api-keys {tmp_path / 'own.txt'};" in own.err


def test_serve_speaks_at_once_and_says_where_its_model_comes_from(
    no_such_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def load(handle: LoadHandle) -> Engine:
        raise ModelError("org/big is not on this machine.")

    def page(services: Services) -> None:
        end = time.monotonic() + 30
        while services.engine.status.state == "loading" and time.monotonic() < end:
            time.sleep(0.01)

    monkeypatch.setattr("chatbot.services.load_engine", lambda settings: LazyEngine(load))
    monkeypatch.setattr("chatbot.ui.server.serve", page)
    monkeypatch.setattr("signal.signal", lambda *_: None)
    told = inside("serve", "--embedding-model", "none", "--data-dir", no_such_model).err
    assert told.startswith("Starting the page…\n") and "was chosen in the settings" in told
