"""A library that is moved to Milvus and back: every chunk, id and vector arrives, an interrupted
move goes on, and what did not arrive is seen. And the program as a whole with --vector-url."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path

import pytest
from cli import KEYWORDS_ONLY, UseScript, inside

from chatbot.api.files import Shelf
from chatbot.api.waiting import WaitingFiles
from chatbot.chat_events import TurnDone
from chatbot.engine.scripted import ScriptedEngine
from chatbot.errors import StoreError
from chatbot.open_marks import MARKS, marked_open, open_elsewhere
from chatbot.operations import readiness
from chatbot.services import build_services
from chatbot.settings import Settings
from retrieval.embed import ScriptedEmbedder
from retrieval.exchange import Exported
from retrieval.index import Index
from retrieval.milvus_exchange import MovableMilvus
from retrieval.milvus_place import MilvusPlace
from retrieval.move import check, move
from retrieval.pipeline import Library
from retrieval.types import Lost, RetrievalError

TEXTS = {
    "a.txt": "The harbour lantern was paid for by the guild.\n\nThe guild kept every receipt.",
    "보고서.txt": "등대는 1915년에 고쳤다.\n\n휴가는 열다섯 날이며 부서장이 받는다.",
    "c.txt": "\n\n".join(f"Line {i} tells of the word{i % 7} and 항목 {i}." for i in range(60)),
}
EMBEDDER = ScriptedEmbedder(dimensions=32)
FILLED: list[Path] = []


@pytest.fixture(scope="module", autouse=True)
def filled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The library that `fill` copies."""
    FILLED.append(tmp_path_factory.mktemp("filled"))
    make_library(FILLED[0])
    yield
    FILLED.clear()


def fill(folder: Path) -> None:
    shutil.copytree(FILLED[0], folder, dirs_exist_ok=True)


def make_library(folder: Path) -> None:
    library = Library(
        folder,
        embedder=EMBEDDER,
        count_tokens=lambda text: len(text.split()),
        chunk_min_tokens=20,
        chunk_max_tokens=40,
    )
    with closing(library):
        for name, text in TEXTS.items():
            path = folder / "file.txt"
            path.write_text(text, encoding="utf-8")
            assert library.ingest(path, name=name).status == "indexed"
        for info in library.documents()[:1]:  # so that ids do not start at 1
            library.delete(info.id)
        path.write_text(TEXTS["a.txt"], encoding="utf-8")
        library.ingest(path, name="a.txt")


@pytest.fixture
def local(tmp_path: Path) -> Iterator[Index]:
    fill(tmp_path)
    with closing(Index(tmp_path / "index.db", embedder=EMBEDDER.name)) as index:
        yield index


@pytest.fixture
def milvus(tmp_path: Path) -> Iterator[MovableMilvus]:
    place = MilvusPlace(str(tmp_path / "vectors.db"), tmp_path / "catalogue.db")
    with closing(MovableMilvus(place, embedder=EMBEDDER.name)) as index:
        yield index


def test_there_and_back_nothing_is_lost(
    local: Index, milvus: MovableMilvus, tmp_path: Path
) -> None:
    assert move(local, milvus) == 3
    report = check(local, milvus)
    assert not report.faults and report.agreement == 1.0
    assert report.chunks == sum(info.chunks for info in local.documents())
    assert report.windows == local.counts()["windows"] and report.searches > 5
    new = milvus.documents()[0]
    with closing(Index(tmp_path / "back.db", embedder=EMBEDDER.name)) as back:
        assert move(milvus, back) == 3
        assert not check(local, back).faults
        highest = max(p.chunk_id for info in back.documents() for p in back.passages(info.id))
        exported = back.export(new.id)
        assert exported is not None
        for place in (back, milvus):  # no id is given a second time
            place.put(replace(new, id="n", name="new"), exported.document, exported.entries)
            info = place.by_name("new")
            assert info is not None and place.passages(info.id)[0].chunk_id > highest


def test_a_move_that_was_ended_goes_on(local: Index, milvus: MovableMilvus) -> None:
    adopt, seen = milvus.adopt, list[str]()

    def once(exported: Exported) -> None:
        if seen:
            raise KeyboardInterrupt
        seen.append(exported.info.name)
        adopt(exported)

    milvus.adopt = once  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        move(local, milvus)
    assert check(local, milvus).faults
    milvus.adopt = adopt  # type: ignore[method-assign]
    assert move(local, milvus) == 2
    assert not check(local, milvus).faults
    assert move(local, milvus) == 0


def test_what_did_not_arrive_is_seen(local: Index, milvus: MovableMilvus) -> None:
    move(local, milvus)
    info = milvus.documents()[0]
    exported = milvus.export(info.id)
    assert exported is not None
    first = exported.entries[0]
    wrong = tuple(replace(window, vector=-window.vector) for window in first.windows)
    milvus.delete(info.id)
    assert any("lists of documents differ" in fault for fault in check(local, milvus).faults)
    entries = (replace(first, windows=wrong), *exported.entries[1:])
    milvus.adopt(replace(exported, entries=entries))
    (fault,) = check(local, milvus).faults[:1]
    assert fault == f"“{info.name}” or its vectors differ."


def test_what_is_there_already_is_not_mixed_with(local: Index, milvus: MovableMilvus) -> None:
    exported = local.export(local.documents()[0].id)
    assert exported is not None
    other = replace(exported.info, id="other", name="other.txt")
    milvus.adopt(replace(exported, info=other))
    with pytest.raises(RetrievalError, match=r"The target holds “other.txt”"):
        move(local, milvus)
    with pytest.raises(RetrievalError, match="has the name or the ids"):
        milvus.adopt(exported)
    with pytest.raises(RetrievalError, match="has the name or the ids"):
        local.adopt(exported)


def open_milvus(tmp_path: Path, name: str) -> MovableMilvus:
    place = MilvusPlace(str(tmp_path / name), tmp_path / "catalogue.db")
    return MovableMilvus(place, embedder=EMBEDDER.name)


def test_an_address_that_holds_nothing_of_the_library_says_so_until_all_is_moved_there(
    local: Index, milvus: MovableMilvus, tmp_path: Path
) -> None:
    move(local, milvus)
    names = {info.id: info.name for info in local.documents()}
    assert milvus.lost().ids == ()
    with closing(open_milvus(tmp_path, "other.db")) as other:
        lost = other.lost()
        assert set(lost.ids) == set(names)
        assert "other.db doesn't hold the passages of 3 documents" in lost.sentence
        (some, *_) = names
        assert other.lost([some]).ids == (some,) and names[some] in other.lost([some]).sentence
        with closing(Index(tmp_path / "new.db")) as new:
            with pytest.raises(RetrievalError, match=r"other\.db doesn't hold"):
                move(other, new)
            with pytest.raises(RetrievalError, match="--to local --vector-url ADDRESS"):
                move(new, other, replace=True)  # nothing would be left anywhere
        assert move(local, other) == 3
        assert not check(local, other).faults and other.lost().ids == ()
    # The first address has the rows of the first move, which are in no list any more.
    assert set(milvus.lost().ids) == set(names)
    assert move(local, milvus) == 3
    assert not check(local, milvus).faults
    assert milvus.counts()["chunks"] == sum(info.chunks for info in local.documents())


def test_what_else_the_target_holds_goes_when_that_is_wanted(
    local: Index, milvus: MovableMilvus
) -> None:
    exported = local.export(local.documents()[0].id)
    assert exported is not None
    milvus.adopt(replace(exported, info=replace(exported.info, sha256="older")))
    with pytest.raises(RetrievalError, match="--replace-target"):
        move(local, milvus)
    assert move(local, milvus, replace=True) == 3
    assert not check(local, milvus).faults


def test_others_on_the_machine_cannot_read_it(tmp_path: Path) -> None:
    with closing(open_milvus(tmp_path, "new.db")), closing(Index(tmp_path / "index.db")):
        modes = {p.name: p.stat().st_mode & 0o777 for p in tmp_path.glob("*.db")}
    assert modes == {"new.db": 0o700, "catalogue.db": 0o600, "index.db": 0o600}


def test_the_command_moves_everybody_and_keeps_the_source(tmp_path: Path) -> None:
    home = tmp_path / "home"
    for folder in (home / "library", home / "people" / "kim" / "library"):
        folder.mkdir(parents=True)
        make_library(folder)  # each with ids of its own
    url = tmp_path / "vectors.db"
    data = ("--data-dir", home, *KEYWORDS_ONLY)
    done = inside("library", "move", "--to", url, "--json", *data)
    assert done.code == 0, done.err
    assert [(line["owner"], line["moved"]) for line in done.lines] == [("", 3), ("kim", 3)]
    assert all(line["chunks"] and not line["faults"] for line in done.lines)
    again = inside("library", "move", "--to", url, "--remove-source", *data)
    assert again.code == 0 and "0 moved now" in again.out
    assert "are kept where they were" in done.err and "were deleted where they were" in again.err
    with closing(Index(home / "library" / "index.db")) as emptied:
        assert set(emptied.counts().values()) == {0}
    back = inside("library", "move", "--to", "local", "--vector-url", url, *data)
    assert back.code == 0, back.err
    with closing(Index(home / "people" / "kim" / "library" / "index.db")) as index:
        assert {info.name for info in index.documents()} == set(TEXTS)


def test_the_command_says_what_cannot_be_moved(tmp_path: Path) -> None:
    data = ("--data-dir", tmp_path / "home")
    for arguments, sentence in (
        (("--to", "local"), "give --vector-url as the place to move from"),
        (("--to", "x.db", "--vector-url", "y.db"), "then without --vector-url: library move --to"),
        (("--to", "nowhere"), "must be the address of a Milvus server"),
    ):
        done = inside("library", "move", *arguments, *data)
        assert done.code in (1, 2) and sentence in done.err


def test_a_mistyped_source_is_not_made_and_all_that_it_lacks_is_counted(tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / "library").mkdir(parents=True)
    fill(home / "library")
    data = ("--data-dir", home, *KEYWORDS_ONLY)
    typo = tmp_path / "vv.db"
    back = inside("library", "move", "--to", "local", "--vector-url", typo, *data)
    assert back.code == 2 and f"There is no vector file {typo}; correct" in back.err
    assert not typo.exists()
    assert inside("library", "move", "--to", tmp_path / "v.db", *data).code == 0
    typo.mkdir()  # there, and with nothing of the library
    back = inside("library", "move", "--to", "local", "--vector-url", typo, *data)
    assert back.code == 1 and "doesn't hold the passages of 3 documents" in back.err


def test_a_program_that_is_open_meanwhile_is_told_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    move_it = ("library", "move", "--to", "local", "--vector-url", tmp_path / "no.db")
    (tmp_path / "no.db").mkdir()
    told: list[str] = []

    def opened(settings: Settings, **options: object) -> None:
        told.append(inside(*move_it, "--data-dir", tmp_path).err)
        raise StoreError("not today")

    for command in ("serve", "chat"):
        monkeypatch.setattr(f"chatbot.commands.{command}.build_services", opened)
        inside(command, "--data-dir", tmp_path)
    told.append(inside(*move_it, "--data-dir", tmp_path).err)
    with marked_open(tmp_path):
        (tmp_path / MARKS / "99999999_1.000_killed").touch()
        assert open_elsewhere(tmp_path) == [os.getpid()]
    assert not list((tmp_path / MARKS).iterdir())
    assert [f"(process {os.getpid()})" in text for text in told] == [True, True, False]


def test_the_program_uses_it_and_people_have_their_own(
    tmp_path: Path, folder: Path, scripted: UseScript
) -> None:
    url = str(tmp_path / "vectors.db")
    arguments = ("--data-dir", tmp_path / "home", "--vector-url", url, *KEYWORDS_ONLY)
    scripted(["."])
    done = inside("ingest", folder / "tower.txt", "--json", *arguments)
    assert done.code == 0 and done.lines[0]["status"] == "indexed", done.err
    assert not (tmp_path / "home" / "library" / "index.db").exists()
    settings = Settings(data_dir=tmp_path / "home", vector_url=url, embedding_model="none", port=0)
    with ExitStack() as stack:
        services = build_services(settings, engine=ScriptedEngine(lambda prompt, ids: "Yes."))
        stack.callback(services.close)
        person = services.for_person("kim")
        stack.callback(person.close)
        assert [info.name for info in services.library.documents()] == ["tower.txt"]
        assert person.library.documents() == [] == person.library.search("tower")
        assert services.library.search("tower")[0].document == "tower.txt"


def test_a_question_over_documents_that_are_elsewhere_says_so(
    tmp_path: Path, folder: Path, scripted: UseScript
) -> None:
    home, here = tmp_path / "home", str(tmp_path / "vectors.db")
    common = ("--data-dir", home, *KEYWORDS_ONLY)
    scripted(["."])
    assert inside("ingest", folder / "tower.txt", "--vector-url", here, *common).code == 0
    settings = Settings(
        data_dir=home, vector_url=str(tmp_path / "new.db"), embedding_model="none", port=0
    )
    services = build_services(settings, engine=ScriptedEngine(lambda prompt, ids: "Yes."))
    with closing(services):
        conversation = services.store.create_conversation()
        (info,) = services.library.documents()
        services.store.set_documents(conversation.id, [info.id])
        *_, last = services.chat.reply(conversation.id, "Who paid for the tower?")
        assert isinstance(last, TurnDone) and last.turn.trace is not None
        (notice,) = [n for n in last.turn.trace.notices if n.code == "documents_lost"]
        assert "new.db doesn't hold" in notice.text and "tower.txt" in notice.text
        with ThreadPoolExecutor(1) as readers:
            waiting = WaitingFiles(tmp_path / "waiting")
            (file,) = Shelf(services.library, services.store, readers, waiting).all()
        assert file.status == "error" and file.details == notice.text
        assert services.library.ingest(folder / "tower.txt").status == "indexed"
        assert services.library.store.lost() == Lost()
        assert services.library.ingest(folder / "tower.txt").status == "unchanged"


def test_a_chat_goes_on_without_documents_and_says_so(tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / "library").mkdir(parents=True)
    settings = Settings(
        data_dir=home, vector_url="http://127.0.0.1:9", embedding_model="none", port=0
    )
    fill(tmp_path)
    here = MilvusPlace(str(tmp_path / "v.db"), home / "library" / "catalogue.db")
    with closing(MovableMilvus(here)) as store, closing(Index(tmp_path / "index.db")) as filled:
        move(filled, store)
    services = build_services(settings, engine=ScriptedEngine(lambda prompt, ids: "Still here."))
    with closing(services):
        conversation = services.store.create_conversation()
        ids = [info.id for info in services.library.documents()]
        services.store.set_documents(conversation.id, ids)
        *_, last = services.chat.reply(conversation.id, "Who paid for the lantern?")
        assert isinstance(last, TurnDone)
        assert last.turn.finish == "stop" and len(ids) == 3
        assert last.turn.trace is not None
        (notice,) = [n for n in last.turn.trace.notices if n.code == "documents_away"]
        assert "127.0.0.1:9 does not answer" in notice.text
        ready = readiness(services)
        assert ready.parts["documents"] == "unreachable" and ready.is_ready
