"""A server that says what a test file has it say, and an engine at it, for all its tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from remote_rig import Liar, a_model, remote_engine

from chatbot.engine import remote_reply
from chatbot.engine.remote import RemoteEngine


@pytest.fixture(autouse=True)
def no_long_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote_reply, "FIRST_WAIT_S", 0.01)


@pytest.fixture(name="liar", scope="module")
def a_liar() -> Iterator[Liar]:
    with a_model() as liar:
        yield liar


@pytest.fixture(name="engine", scope="module")
def an_engine(liar: Liar) -> Iterator[RemoteEngine]:
    engine = remote_engine(liar.url)
    yield engine
    engine.close()
