"""kill -9 in a reply, in a fold and in an upload, at random moments: nothing finished is lost."""

from __future__ import annotations

import random
import signal
import sqlite3
import time
from pathlib import Path
from typing import Any

import pytest
from crash_child import work
from killable import child

from chatbot.store import Store
from retrieval.embed import ScriptedEmbedder
from retrieval.pipeline import Library

ROUNDS = 6

pytestmark = pytest.mark.skipif(
    not hasattr(signal, "SIGKILL"), reason="needs kill -9 (not Windows)"
)


Said = list[tuple[Any, ...]]


def run_and_kill(phase: str, folder: Path, chance: random.Random) -> Said:
    """Start the child, kill it some time after it began the work; what it said was finished."""
    said: Said = []
    busy = chance.randint(1, 6)
    with child(work, phase, folder) as running:
        while busy:
            said.append(running.hear())
            busy -= said[-1][0] == "busy"
        time.sleep(chance.uniform(0, 0.25))
        said += running.kill()
        assert running.process.exitcode == -signal.SIGKILL, "the child ended by itself"
    return said


def of(said: Said, kind: str) -> Said:
    return [words[1:] for words in said if words[0] == kind]


@pytest.mark.slow
@pytest.mark.parametrize("phase", ["reply", "fold"])
def test_turns_and_summaries(phase: str, tmp_path: Path) -> None:
    chance = random.Random(phase)
    finished: dict[str, set[str]] = {}
    for _ in range(ROUNDS):
        said = run_and_kill(phase, tmp_path, chance)
        for (conversation_id,) in of(said, "conversation"):
            finished[conversation_id] = {turn_id for (turn_id,) in of(said, "turn")}
            covers = [number for (number,) in of(said, "summary")]
        store = Store(tmp_path / "chats.db")
        assert len(store.list_conversations()) >= len(finished)
        for conversation_id, turn_ids in finished.items():
            conversation = store.load(conversation_id)
            by_id = {turn.id: turn for turn in conversation.turns}
            assert turn_ids <= by_id.keys()
            assert all(by_id[i].finish in ("stop", "length") for i in turn_ids)
            assert all(store.load_trace(i) is not None for i in turn_ids)
            unfinished = [t for t in conversation.turns if t.id not in turn_ids]
            assert len(unfinished) <= 1
            assert all(t.finish != "running" for t in unfinished)
        if covers:
            assert conversation.summary is not None
            assert conversation.summary.covers >= max(covers)
        store.close()
    with sqlite3.connect(tmp_path / "chats.db") as database:
        assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)


@pytest.mark.slow
def test_edits_and_versions(tmp_path: Path) -> None:
    """Whatever the kill cuts short: every finished reply is in the chat or in a version of it."""
    chance = random.Random("edit")
    for _ in range(ROUNDS - 2):
        said = run_and_kill("edit", tmp_path, chance)
        ((conversation_id,),) = of(said, "conversation")
        with Store(tmp_path / "chats.db") as store:
            conversation = store.load(conversation_id)
            for turn in conversation.turns:
                assert turn.finish != "running"
                assert turn.id in {v.id for v in store.versions(conversation_id, turn.id)}
        with sqlite3.connect(tmp_path / "chats.db") as database:
            stored = {row[0] for row in database.execute("SELECT id FROM turns")}
            owned = "SELECT id FROM conversations WHERE branch_of IS NULL OR branch_of IN ("
            orphans = f"SELECT id FROM conversations EXCEPT {owned}SELECT id FROM conversations)"
            assert database.execute(orphans).fetchall() == []
        assert {turn_id for (turn_id,) in of(said, "turn")} <= stored


@pytest.mark.slow
def test_documents(tmp_path: Path) -> None:
    chance = random.Random("upload")
    for round_number in range(ROUNDS):
        folder = tmp_path / str(round_number)
        folder.mkdir()
        said = run_and_kill("upload", folder, chance)
        library = Library(
            folder / "library",
            embedder=ScriptedEmbedder(),
            count_tokens=lambda text: len(text.split()),
        )
        listed = {info.id: info for info in library.documents()}
        for document_id, number, chunks in of(said, "document"):
            assert listed[document_id].chunks == chunks == len(library.chunks(document_id))
            found = library.search(f"marker{number}x399")
            assert any(f"marker{number}x399" in p.text for p in found)
        for info in listed.values():
            # Whatever is listed is there to its last line, also if the kill came right after.
            assert len(library.chunks(info.id)) == info.chunks > 0
            assert (
                library.document_text(info.id).rstrip().splitlines()[-1].startswith("Line 399 of")
            )
        assert {p.document_id for p in library.search("speaks of line", top_k=200)} <= listed.keys()
        library.close()
