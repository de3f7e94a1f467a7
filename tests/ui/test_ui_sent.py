"""What becomes of a question that was sent and could not be answered: it is never lost."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from chatbot.engine.base import EngineStatus
from chatbot.engine.scripted import ScriptedEngine
from chatbot.errors import EngineError, StoreError
from chatbot.services import Services, build_services
from chatbot.settings import Settings
from chatbot.ui import replies
from chatbot.ui.calls import Call
from chatbot.ui.handlers import Handlers
from chatbot.ui.inbox import Inbox
from retrieval.embed import ScriptedEmbedder, Vectors
from retrieval.types import RetrievalError
from tests.ui.samples import TAB


class Slow(ScriptedEngine):
    """An engine whose model comes when it is told to."""

    is_there = False

    @property
    def status(self) -> EngineStatus:
        return super().status if self.is_there else EngineStatus("loading", "Reading weights.")


@pytest.fixture
def engine() -> Slow:
    return Slow(lambda prompt, ids: "Noted.")


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The warnings of the page."""
    found: list[str] = []
    monkeypatch.setattr(replies, "warn", found.append)
    return found


def send(page: Handlers, text: str) -> list[Any]:
    """What the box holds after each update that says so."""
    updates = list(page.send(Call(TAB, "", ""), text))
    return [u["msg"]["value"] for u in updates if "value" in u.get("msg", {})]


def kept(services: Services) -> list[tuple[str, str]]:
    store = services.store
    chats = [store.load(info.id) for info in store.list_conversations()]
    return [(turn.question, turn.finish) for chat in chats for turn in chat.turns]


def broken(error: Exception) -> Callable[..., None]:
    def take(*_: object, **__: object) -> None:
        raise error

    return take


@pytest.mark.parametrize(
    "error",
    [RetrievalError("The documents are away."), EngineError("No tokenizer."),
     StoreError("The disk is full.")],
)  # fmt: skip
def test_what_fails_before_it_is_stored_comes_back_into_the_box(
    page: Handlers, services: Services, engine: Slow, told: list[str], error: Exception
) -> None:
    engine.is_there = True
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(services.chat, "_take", broken(error))
        assert send(page, "When does it open?") == ["", "When does it open?"]
    assert told == [str(error)]
    assert send(page, "When does it open?") == [""]
    assert kept(services) == [("When does it open?", "stop")]


def test_a_fault_of_the_program_does_not_take_the_text_with_it(
    page: Handlers, services: Services, engine: Slow, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine.is_there = True
    monkeypatch.setattr(services.chat, "_take", broken(ValueError("Ours.")))
    updates = page.send(Call(TAB, "", ""), "When does it open?")
    boxes: list[Any] = []
    with pytest.raises(ValueError, match="Ours"):
        for update in updates:
            boxes.append(update.get("msg"))
    assert boxes[-1]["value"] == "When does it open?"


def test_a_tab_that_is_closed_while_the_model_loads_leaves_its_question_in_the_chat(
    page: Handlers, services: Services, engine: Slow
) -> None:
    updates = page.send(Call(TAB, "", ""), "When does it open?")
    next(updates), next(updates)
    assert kept(services) == []
    updates.close()  # type: ignore[attr-defined]
    assert kept(services) == [("When does it open?", "cancelled")]


@pytest.mark.parametrize("ending", ["unload", "close"])
def test_the_end_of_the_tab_or_of_the_program_keeps_it_too(
    page: Handlers, services: Services, ending: str
) -> None:
    updates = page.send(Call(TAB, "", ""), "When does it open?")
    next(updates), next(updates)
    page.desk.leave(TAB) if ending == "unload" else page.close()
    for update in updates:
        assert not update.get("msg", {}).get("value")
    assert kept(services) == [("When does it open?", "cancelled")]


class Fetched(ScriptedEmbedder):
    """An embedding model that comes when it is told to, and not before somebody asks."""

    def __init__(self) -> None:
        super().__init__()
        self.comes = threading.Event()
        self.is_loading = False

    def embed_query(self, text: str) -> Vectors:
        self.is_loading = not self.comes.is_set()
        assert self.comes.wait(30)
        self.is_loading = False
        return super().embed_query(text)


def test_the_page_says_that_a_question_waits_for_the_embedding_model(
    tmp_path: Path, engine: Slow, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replies, "WAIT_S", 0.05)
    engine.is_there = True
    embedder = Fetched()
    file = tmp_path / "hours.txt"
    file.write_text("The museum opens at nine.")
    settings = Settings(data_dir=tmp_path, recall_vectors="off")
    made = build_services(settings, engine=engine, make_embedder=lambda _: embedder)
    with closing(made) as services:
        page = Handlers(services, Inbox(tmp_path / "incoming", 1000))
        chat = services.store.create_conversation().id
        documents = [services.library.ingest(file).document_id]
        services.store.set_documents(chat, [known for known in documents if known])
        page.load(Call(TAB, "", chat), "en", "")
        shown = []
        for update in page.send(Call(TAB, "", chat), "When does it open?"):
            shown.append(str(update.get("chat", "")))
            if "Getting the embedding model" in shown[-1]:
                embedder.comes.set()
        assert embedder.comes.is_set() and "Noted." in shown[-1]
        page.close()


def test_stop_while_the_model_loads_brings_it_back_and_leaves_no_chat(
    page: Handlers, services: Services
) -> None:
    updates = page.send(Call(TAB, "", ""), "When does it open?")
    next(updates), next(updates)
    page.stop(Call(TAB, "", page.desk.tab(TAB).conversation_id))
    assert list(updates)[-1]["msg"]["value"] == "When does it open?"
    assert services.store.list_conversations() == []
