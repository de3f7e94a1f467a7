"""What every test stands on: an empty home, a clean environment, no network, shared models."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import netguard
import pytest

from chatbot.settings import default_cache_dir

ROOT = Path(__file__).resolve().parent.parent
ORIGINAL_ENVIRONMENT = dict(os.environ)
MODEL_CACHE = default_cache_dir()
"""Where `make` has put the embedded models; looked up before the home folder is swapped."""

PERSONAL_PREFIXES = ("CHATBOT_", "HF_", "HUGGING", "TRANSFORMERS_", "GRADIO_", "XDG_")


@pytest.fixture(scope="session", autouse=True)
def isolated_process() -> Iterator[None]:
    """No settings, keys or caches of whoever runs the tests, and nothing outside the machine."""
    netguard.refuse_outside()
    with pytest.MonkeyPatch.context() as patch:
        for name in list(os.environ):
            if name.startswith(PERSONAL_PREFIXES):
                patch.delenv(name)
        # For the programs that tests start.
        patch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), str(ROOT / "tests" / "netguard")]))
        yield


@pytest.fixture(autouse=True)
def empty_home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A new home and working folder, so that no chatbot.toml or chat of the user is seen."""
    home = tmp_path_factory.mktemp("home")
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
