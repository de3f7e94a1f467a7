"""Kill -9 while documents get the vectors of another embedding model: it goes on where it was."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from retrieval.embed import ScriptedEmbedder
from retrieval.index import Index
from retrieval.pipeline import Library

ROOT = Path(__file__).resolve().parent.parent
N_DOCUMENTS = 12
CHILD = """
import sys
from pathlib import Path
from retrieval.embed import ScriptedEmbedder
from retrieval.pipeline import Library

library = Library(Path(sys.argv[1]), embedder=ScriptedEmbedder(name="two", delay_s=0.01),
    count_tokens=lambda t: len(t.split()))
print("ready", flush=True)
library.wait_until_embedded()
print("done", flush=True)
"""

pytestmark = pytest.mark.skipif(
    not hasattr(signal, "SIGKILL"), reason="needs kill -9 (not Windows)"
)


def opened(folder: Path, name: str) -> Library:
    return Library(
        folder, embedder=ScriptedEmbedder(name=name), count_tokens=lambda t: len(t.split())
    )


def filled(folder: Path, texts: Path, name: str) -> Library:
    library = opened(folder, name)
    for number in range(N_DOCUMENTS):
        path = texts / f"{number}.txt"
        path.write_text(f"Harbour number {number} has a lantern. " * 60, encoding="utf-8")
        assert library.ingest(path).status == "indexed"
    return library


def found(library: Library) -> list[tuple[str, int, int, float]]:
    return [
        (p.document, p.start, p.end, round(p.score, 5))
        for query in ("harbour number 7", "who has a lantern")
        for p in library.search(query)
    ]


def stale(folder: Path) -> int:
    index = Index(folder / "index.db", embedder="two")
    try:
        return len(index.stale())
    finally:
        index.close()


def test_killed_renewals_lose_and_repeat_nothing(tmp_path: Path) -> None:
    folder, chance = tmp_path / "library", random.Random(3)
    filled(folder, tmp_path, "one").close()
    left = [N_DOCUMENTS]
    for _ in range(4):
        child = subprocess.Popen(
            [sys.executable, "-c", CHILD, str(folder)],
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        )
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        time.sleep(chance.uniform(0.02, 0.4))
        child.kill()
        child.communicate()
        left.append(stale(folder))
    assert left == sorted(left, reverse=True)  # what is done stays done
    library = opened(folder, "two")
    assert library.wait_until_embedded(60)
    assert stale(folder) == 0
    fresh = filled(tmp_path / "fresh", tmp_path, "two")
    assert found(library) == found(fresh)
    assert library._index.counts() == fresh._index.counts()
    library.close()
    fresh.close()
