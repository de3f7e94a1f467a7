"""Documents that come, change, move and go at random, with kill -9 in between: what is found is
always what an index built fresh from the files that should be there finds. In the folder, and in
Milvus, where the fresh index to compare with is a local one all the same."""

from __future__ import annotations

import os
import random
import shutil
import signal
import time
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import pytest
from hypothesis import HealthCheck, event, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    rule,
    run_state_machine_as_test,
)

from retrieval.pipeline import Library
from tests.killable import Child
from tests.library_child import change, open_library, work
from tests.milvus_server import milvus_server

STEPS = int(os.environ.get("CHATBOT_LIFE_STEPS", "200"))
"""Set it to 2000 for the long run."""
STEPS_EACH = 50
MILVUS_STEPS = max(50, STEPS // 8)
"""Fewer: each step asks a server, and each killed process takes its time to connect again."""
NAMES = ("a.txt", "b.txt", "2025/report.txt", "2026/report.txt", "보고서.txt")
N_TEXTS = 7
QUERIES = ("harbour lantern 3", "등대는 언제 고쳤나", "who paid for word17 and word4", "report")
Files = dict[str, int]  # document name -> number of its text
Findings = list[tuple[object, ...]]

pytestmark = pytest.mark.skipif(
    not hasattr(signal, "SIGKILL"), reason="needs kill -9 (not Windows)"
)


def text_of(number: int) -> str:
    chance = random.Random(number)
    lines = [
        f"The harbour lantern {number} was paid for by word{chance.randrange(40)} in line {at}. "
        f"등대 {chance.randrange(9)}호는 {1900 + chance.randrange(99)}년에 고쳤다."
        for at in range(4 + 4 * (number % 3))
    ]
    return "\n\n".join(lines)


@cache
def text_files() -> list[Path]:
    folder = Path(mkdtemp(prefix="life-texts-"))
    files = [folder / f"{number}.txt" for number in range(N_TEXTS)]
    for number, path in enumerate(files):
        path.write_text(text_of(number), encoding="utf-8")
    return files


def found(library: Library) -> Findings:
    """All that can be asked of a library, without the ids that chance has made."""
    passages = [
        (query, p.document, p.start, p.end, p.text, round(p.score, 5))
        for query in QUERIES
        for p in library.search(query, top_k=1000)
    ]
    listed = sorted((d.name, d.sha256, d.chunks) for d in library.documents())
    return [*listed, *passages]


@cache
def fresh(files: tuple[tuple[str, int], ...]) -> Findings:
    folder = Path(mkdtemp(prefix="life-fresh-"))
    library = open_library(folder)
    for name, number in files:
        library.ingest(text_files()[number], name=name)
    result = found(library)
    library.close()
    shutil.rmtree(folder)
    return result


def as_fresh(files: Files) -> Findings:
    return fresh(tuple(sorted(files.items())))


class Life(RuleBasedStateMachine):
    """One library that two processes have open: this one, and a child that gets killed."""

    vector_url = ""
    kill_within_s = 0.03

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(mkdtemp(prefix="life-"))
        self.library = open_library(self.folder, self.vector_url)
        self.files: Files = {}
        self.child: Child | None = None

    @rule(name=st.sampled_from(NAMES), number=st.integers(0, N_TEXTS - 1))
    def upload_or_replace(self, name: str, number: int) -> None:
        self._change(name, number)

    @rule(name=st.sampled_from(NAMES))
    def delete(self, name: str) -> None:
        self._change(name, None)

    @rule(name=st.sampled_from(NAMES), new=st.sampled_from(NAMES))
    def rename_or_upload_again(self, name: str, new: str) -> None:
        # What is drawn must not depend on what a kill has left, so it may be nothing.
        if name in self.files:
            number = self.files[name]
            self._change(name, None)
            self._change(new, number)

    @rule()
    def reopen(self) -> None:
        self.library.close()
        self.library = open_library(self.folder, self.vector_url)
        assert self.library.wait_until_embedded(30)
        kept = {path.name.partition(".")[0] for path in (self.folder / "files").iterdir()}
        assert kept == {info.id for info in self.library.documents()}

    @rule(
        name=st.sampled_from(NAMES),
        number=st.none() | st.integers(0, N_TEXTS - 1),
        wait=st.floats(0, 1),
    )
    def kill_while_it_changes(self, name: str, number: int | None, wait: float) -> None:
        """The change has happened or not; both are right, and nothing between the two."""
        child = self._living_child()
        child.say(None if number is None else text_files()[number], name)
        assert child.hear() == "busy"
        time.sleep(wait * self.kill_within_s)
        finished = "done" in child.kill()
        before, after = dict(self.files), _changed(self.files, name, number)
        now = found(self.library)
        unchanged = self.same(now, as_fresh(before))
        event(f"killed {'after' if finished else 'before' if unchanged else 'in'} it")
        if finished or not unchanged:
            assert self.same(now, as_fresh(after))
            self.files = after

    @invariant()
    def as_if_built_fresh(self) -> None:
        assert self.same(found(self.library), as_fresh(self.files))

    def same(self, found: Findings, fresh: Findings) -> bool:
        return found == fresh

    def teardown(self) -> None:
        if self.child is not None:
            self.child.close()
        self.library.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _change(self, name: str, number: int | None) -> None:
        change(self.library, None if number is None else text_files()[number], name)
        self.files = _changed(self.files, name, number)

    def _living_child(self) -> Child:
        if self.child is None or not self.child.process.is_alive():
            if self.child is not None:
                self.child.close()
            self.child = Child(work, self.folder, self.vector_url)
            assert self.child.hear() == "ready"
        return self.child


class MilvusLife(Life):
    """The same with chunks and vectors in Milvus, at one server for both processes."""

    kill_within_s = 0.2

    def same(self, found: Findings, fresh: Findings) -> bool:
        """All is found that a local index finds. Its cosines may be rounded otherwise."""
        rows = [(row[:-1], row[-1]) for row in found], [(row[:-1], row[-1]) for row in fresh]
        here, there = (dict(some) for some in rows)
        if here.keys() != there.keys():
            return False
        return all(abs(float(str(here[key])) - float(str(there[key]))) < 1e-4 for key in here)

    @rule()
    def reopen(self) -> None:
        super().reopen()
        counts = self.library._index.counts()
        chunks = sum(info.chunks for info in self.library.documents())
        assert counts["chunks"] == chunks, "rows of what is not there any more are still in Milvus"
        assert counts["batches"] == 0


def _changed(files: Files, name: str, number: int | None) -> Files:
    rest = {key: value for key, value in files.items() if key != name}
    return rest if number is None else {**rest, name: number}


def live(machine: type[Life], steps: int) -> None:
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=max(1, steps // STEPS_EACH),
            stateful_step_count=min(steps, STEPS_EACH),
            deadline=None,
            derandomize=True,
            database=None,
            suppress_health_check=list(HealthCheck),
        ),
    )


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_documents_that_come_and_go() -> None:
    live(Life, STEPS)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_documents_that_come_and_go_in_milvus(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with milvus_server(tmp_path / "milvus") as server:
        monkeypatch.setattr(MilvusLife, "vector_url", server.url)
        live(MilvusLife, MILVUS_STEPS)


def test_a_wrong_index_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The comparison itself: a library that forgets to delete is not as if built fresh."""
    life = Life()
    try:
        life._change("a.txt", 1)
        monkeypatch.setattr(Library, "delete", lambda *_: None)
        life._change("a.txt", None)
        with pytest.raises(AssertionError):
            life.as_if_built_fresh()
    finally:
        life.teardown()
