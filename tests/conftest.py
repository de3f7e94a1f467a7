"""What every test stands on: an empty home, a clean environment, no network, shared models."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

import netguard
import pytest
from hypothesis import settings
from postgres_rig import either_place, postgres  # noqa: F401  (fixtures for all tests)

from chatbot.settings import Settings, default_cache_dir

# The fixtures import what they build themselves, so that a test of one part needs no other.
if TYPE_CHECKING:
    from cli import UseScript

    from chatbot.engine.base import Engine
    from chatbot.engine.scripted import Script, ScriptedEngine
    from chatbot.services import Services
    from retrieval.embed import Embedder

# How long an example takes says more about the machine than about the code.
settings.register_profile("no_deadline", deadline=None)
settings.load_profile("no_deadline")

ROOT = Path(__file__).resolve().parent.parent
ORIGINAL_ENVIRONMENT = dict(os.environ)
MODEL_CACHE = Path(os.environ.get("CHATBOT_CACHE_DIR") or default_cache_dir())
"""Where `make` has put the embedded models; looked up before the home folder is swapped."""

NO_TELEMETRY = ("HF_HUB_DISABLE_TELEMETRY", "1")
# As the program does. The hub's library reads it once, when a test file first imports it.
os.environ[NO_TELEMETRY[0]] = NO_TELEMETRY[1]

PERSONAL_PREFIXES = ("CHATBOT_", "HF_", "HUGGING", "TRANSFORMERS_", "GRADIO_", "XDG_")


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """The cases of `conversations/*.yaml` are tests like all others."""
    if file_path.suffix != ".yaml":
        return None
    from chatbot.regression.pytest_plugin import pytest_collect_file

    return pytest_collect_file(file_path, parent)


# Browser tests that mostly use servers of their own; about as much work as all others of them.
OWN_SERVERS = ("test_demo", "test_crowd", "test_tabs_page", "test_lists", "test_text_page")

# Files whose tests share a server that takes seconds to start.
SHARED_SERVERS = ("test_engine_contract", "test_milvus_index")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """In several processes, the browser tests are in two of them: one browser, and one server for
    all that need none of their own, serve each half. They begin early, being large scopes.

    Marks cannot say so: of a test's id, into which they are written, nothing is read by now.
    """
    from xdist.scheduler import LoadScopeScheduling

    class Halves(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            path = PurePosixPath(nodeid.partition("::")[0])
            if path.stem in SHARED_SERVERS:
                return path.stem
            if path.parent.name != "browser":
                return nodeid
            return "browser, own" if path.stem in OWN_SERVERS else "browser, shared"

    return Halves(config, log)


@pytest.fixture(scope="session", autouse=True)
def isolated_process() -> Iterator[None]:
    """No settings, keys or caches of whoever runs the tests, and nothing outside the machine."""
    netguard.refuse_outside()
    with pytest.MonkeyPatch.context() as patch:
        for name in list(os.environ):
            if name.startswith(PERSONAL_PREFIXES):
                patch.delenv(name)
        patch.setenv(*NO_TELEMETRY)
        # For the programs that tests start.
        patch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), str(ROOT / "tests" / "netguard")]))
        yield


@pytest.fixture(scope="session")
def homes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Names for new homes; pytest's own way reads the names of thousands for each."""
    folder = tmp_path_factory.mktemp("homes")
    return (folder / str(number) for number in itertools.count())


@pytest.fixture(autouse=True)
def empty_home(homes: Iterator[Path], monkeypatch: pytest.MonkeyPatch) -> Path:
    """A new home and working folder, so that no chatbot.toml or chat of the user is seen."""
    home = next(homes)
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("USERPROFILE", str(home))
    monkeypatch.setenv("XDG_DATA_HOME", str(home / "data"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(home / "cache"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / "config"))
    monkeypatch.chdir(home)
    return home


@pytest.fixture(autouse=True)
def no_outside_contact() -> Iterator[None]:
    """Libraries may swallow the refusal, so the attempt itself fails the test."""
    netguard.attempts.clear()
    yield
    assert not netguard.attempts, f"reached out of the machine: {netguard.attempts}"


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Public measuring data beside the project; tests that need it are skipped without it."""
    folder = ROOT.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("needs the measuring data in ../shared/data")
    return folder


@pytest.fixture(scope="session")
def model_cache() -> Path:
    """The cache folder with the embedded models in it.

    `make test` has fetched them; a plain pytest run does it here, as its user would.
    """
    command = [sys.executable, "-m", "chatbot", "fetch", "--cache-dir", str(MODEL_CACHE)]
    done = subprocess.run(
        command, cwd=ROOT, env=ORIGINAL_ENVIRONMENT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"the embedded models cannot be fetched: {done.stderr}"
    return MODEL_CACHE


@pytest.fixture(scope="session")
def demo_engine(model_cache: Path) -> Iterator[Engine]:
    """The embedded demo model, loaded once for all tests. They must not close it."""
    from chatbot.parts import load_engine

    engine = load_engine(Settings(cache_dir=model_cache))
    assert engine.wait().state == "ready", engine.status.message
    yield engine
    engine.close()


@pytest.fixture(scope="session")
def demo_embedder(model_cache: Path) -> Embedder:
    """The embedded embedding model."""
    from chatbot.parts import build_embedder

    embedder = build_embedder(Settings(cache_dir=model_cache))
    assert embedder is not None
    return embedder


@pytest.fixture
def scripted_engine() -> ScriptedEngine:
    """An engine that answers every question with one sentence."""
    from chatbot.engine.scripted import ScriptedEngine

    return ScriptedEngine(lambda prompt, ids: "The scripted reply.")


@pytest.fixture
def services(scripted_engine: ScriptedEngine, tmp_path: Path) -> Iterator[Services]:
    """The whole program over a scripted engine and keyword search, in an empty data folder."""
    from chatbot.services import build_services

    settings = Settings(data_dir=tmp_path / "data", embedding_model="none", port=0)
    built = build_services(settings, engine=scripted_engine)
    yield built
    built.close()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of documents, one of them damaged."""
    documents = tmp_path / "documents"
    documents.mkdir()
    (documents / "tower.txt").write_text("The tower was built in 1915.\n", encoding="utf-8")
    (documents / "등대.txt").write_text("등대의 높이는 16미터이다.\n", encoding="utf-8")
    (documents / "broken.pdf").write_bytes(b"\x00\x01\x02")
    return documents


@pytest.fixture
def scripted(monkeypatch: pytest.MonkeyPatch) -> UseScript:
    """Let commands use a scripted engine, and its tokenizer, in place of the configured model."""

    from chatbot.engine.scripted import ScriptedEngine
    from chatbot.engine.scripted_tokenizer import ScriptedTokenizer

    def use(script: Script) -> ScriptedEngine:
        engine = ScriptedEngine(script)
        monkeypatch.setattr("chatbot.services.load_engine", lambda settings: engine)
        for command in ("context", "ingest"):
            monkeypatch.setattr(
                f"chatbot.commands.{command}.load_model_tokenizer",
                lambda settings, progress: ScriptedTokenizer(),
            )
        return engine

    return use
