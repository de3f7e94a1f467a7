"""What is said where a package is not installed: one sentence, whose command works as it stands."""

from __future__ import annotations

import importlib.abc
import re
import shlex
import sys
from collections.abc import Callable
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest
from pydantic import SecretStr

import chatbot.engine
from chatbot.engine.lazy import LazyEngine
from chatbot.operations import check_settings
from chatbot.parts import load_engine
from chatbot.settings import Settings
from chatbot.store import Store
from chatbot.ui.sentences import in_language
from retrieval.catalogue_database import CatalogueDatabase
from retrieval.milvus_index import open_milvus_index
from retrieval.missing import ROOT, TEAM_FILE, needs_package

SENTENCE = re.compile(r"(?P<what>.+) needs the package (?P<package>[\w-]+); run: (?P<command>.+)")
DATABASE = "postgresql://someone:secret@127.0.0.1:9/none"


class Lacking(importlib.abc.MetaPathFinder):
    """A Python without some packages."""

    def __init__(self, *names: str) -> None:
        self.names = names

    def find_spec(self, name: str, *_: object) -> ModuleSpec | None:
        if name.partition(".")[0] in self.names:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return None


@pytest.fixture
def lack(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    def without(*names: str) -> None:
        for name, module in list(sys.modules.items()):
            if name.partition(".")[0] in names:
                monkeypatch.delitem(sys.modules, name)
            elif name.startswith("chatbot.engine.remote"):
                # Its place in the package, too, would be taken by what is imported anew.
                monkeypatch.setattr(chatbot.engine, name.rpartition(".")[2], module)
                monkeypatch.delitem(sys.modules, name)
        monkeypatch.setattr(sys, "meta_path", [Lacking(*names), *sys.meta_path])

        def found(name: str, package: str | None = None) -> object:
            return None if name in names else object()

        monkeypatch.setattr("importlib.util.find_spec", found)

    return without


def engine(folder: Path) -> None:
    lazy: LazyEngine = load_engine(Settings(engine_url="http://127.0.0.1:9/v1"))
    status = lazy.wait(60)
    assert status.state == "failed" and not status.again
    _ = lazy.info


def metrics(folder: Path) -> None:
    check_settings(Settings(metrics_token=SecretStr("x")))


def conversations(folder: Path) -> None:
    Store(DATABASE)


def catalogue(folder: Path) -> None:
    CatalogueDatabase(DATABASE)


def vectors_of_a_server(folder: Path) -> None:
    open_milvus_index("http://127.0.0.1:9", folder / "list.db")


def vectors_of_a_file(folder: Path) -> None:
    open_milvus_index(str(folder / "vectors.db"), folder / "list.db")


@pytest.mark.parametrize(
    ("act", "module", "package"),
    [
        (engine, "openai", "openai"),
        (metrics, "prometheus_client", "prometheus-client"),
        (conversations, "psycopg", "psycopg"),
        (catalogue, "psycopg", "psycopg"),
        (vectors_of_a_server, "pymilvus", "pymilvus"),
        (vectors_of_a_file, "milvus_lite", "milvus-lite"),
    ],
)
def test_each_missing_package_is_told_in_the_same_words(
    act: Callable[[Path], None],
    module: str,
    package: str,
    lack: Callable[..., None],
    tmp_path: Path,
) -> None:
    lack(module)
    with pytest.raises(Exception) as caught:
        act(tmp_path)
    told = str(caught.value)
    found = SENTENCE.fullmatch(told)
    assert found, told
    assert found["package"] == package and "secret" not in told
    assert told == needs_package(found["what"], package)
    python, *_, file = shlex.split(found["command"])
    assert python == sys.executable and Path(file).is_file()


def test_the_command_is_short_in_the_folder_of_the_program_and_quotes_blanks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "executable", "/opt/my python/bin/python")
    monkeypatch.chdir(ROOT)
    assert needs_package("--x", "y") == (
        "--x needs the package y; run: '/opt/my python/bin/python' -m pip install -r " + TEAM_FILE
    )
    monkeypatch.setattr(sys, "platform", "win32")
    assert '"/opt/my python/bin/python" -m pip' in needs_package("--x", "y")


def test_all_packages_that_are_told_of_are_on_the_list() -> None:
    listed = (ROOT / TEAM_FILE).read_text(encoding="utf-8")
    for package in ("openai", "prometheus-client", "psycopg", "pymilvus", "milvus-lite"):
        assert f"\n{package}==" in listed


def test_the_page_says_it_in_korean() -> None:
    told = in_language("ko", needs_package("--engine-url", "openai"))
    assert "패키지가 필요합니다" in told and told.endswith(TEAM_FILE)
