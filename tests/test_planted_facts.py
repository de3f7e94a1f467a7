"""The measuring command for planted facts: small chats, and one long chat of real talk."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks import planted_facts
from benchmarks.planted_chats import Planted, Source, chats
from benchmarks.planted_facts import is_marked
from benchmarks.summarisers import SUMMARISERS

TALK = (
    "How do bees find their way home from a field of flowers several miles away?",
    "Bees learn the look of the land around the hive and keep the angle of the sun in mind. ",
)
TALK_KO = (
    "벌은 어떻게 집으로 돌아가는 길을 찾아요?",
    "벌은 벌집 둘레의 모습을 익히고 해가 떠 있는 방향을 기억해서 길을 찾습니다. ",
)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A folder in the form of the shared data, with dull talk in both languages."""
    beam, korquad = tmp_path / "memory" / "beam100k", tmp_path / "qa" / "korquad1"
    beam.mkdir(parents=True)
    (korquad / "documents").mkdir(parents=True)
    messages = []
    for n in range(24):
        messages.append({"role": "user", "content": f"{TALK[0]} (part {n}) ->-> 1,{n}"})
        messages.append({"role": "assistant", "content": TALK[1] * 5})
    (beam / "one.json").write_text(json.dumps({"messages": messages}), encoding="utf-8")
    lines = []
    for n in range(240):
        (korquad / "documents" / f"p{n}.txt").write_text(TALK_KO[1] * 3, encoding="utf-8")
        lines.append(json.dumps({"question": TALK_KO[0], "gold": [{"document": f"p{n}.txt"}]}))
    (korquad / "questions.jsonl").write_text("\n".join(lines), encoding="utf-8")
    return tmp_path


def report(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert planted_facts.main(["--json", *arguments]) == 0
    last = capsys.readouterr().out.splitlines()[-1]
    result: dict[str, Any] = json.loads(last)
    return result


@pytest.mark.parametrize("summaries", ["bad", "failing"])
def test_every_fact_is_in_the_prompt_that_needs_it(
    data: Path, capsys: pytest.CaptureFixture[str], summaries: str
) -> None:
    found = report(
        capsys, "--data", str(data), "--seeds", "1", "--turns", "24", "--summaries", summaries
    )
    for language in ("en", "ko"):
        figures = found[language]
        assert figures["facts"] == figures["present"] == 8, figures["missing"]
        assert figures["corrected"] == figures["corrected_present"] == 8, figures["missing"]
        assert figures["fewest_folds"] >= 2
        assert figures["over_budget"] == 0


@pytest.mark.long
@pytest.mark.slow
def test_sixty_turns_of_real_talk(shared_data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = report(capsys, "--data", str(shared_data), "--seeds", "1", "--language", "en")
    figures = found["en"]
    assert figures["present"] == 8 and figures["corrected_present"] == 8, figures["missing"]
    assert figures["fewest_folds"] >= 10


def test_without_the_data_one_sentence_says_so(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(SystemExit, match="--data"):
            planted_facts.main(["--data", str(folder)])


def test_facts_are_asked_for_in_other_words_and_are_of_eight_kinds(data: Path) -> None:
    for language in ("en", "ko"):
        for chat in chats(Source(data), language, seeds=range(3), turns=24):
            assert len({fact.kind for fact in chat.planted}) == 8
            said = "\n".join(user for user, _ in chat.turns)
            for fact in chat.planted:
                assert fact.said in said and (fact.change or "") in said
                assert fact.value not in fact.question
                assert fact.value in (fact.change or fact.said)


def test_what_counts_as_marked() -> None:
    fact = Planted("date", "It is on 3 May.", "When?", "9 May", "3 May", "It moved to 9 May.")
    assert is_marked(fact, "- It is 9 May. (moved from 3 May to 9 May)")
    assert is_marked(fact, "It is on 3 May.\nIt moved to 9 May.")
    assert is_marked(fact, "It moved to 9 May.")
    assert not is_marked(fact, "It is on 3 May.")
    assert not is_marked(fact, "It moved to 9 May.\nIt is on 3 May.")
    assert not is_marked(fact, "9 May")


def test_bad_summarisers_are_all_refused() -> None:
    assert set(SUMMARISERS) >= {"bad", "demo", "failing", "empty", "apology", "language"}
