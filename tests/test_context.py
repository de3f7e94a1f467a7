"""Packing into a budget, and cutting long documents down to what serves it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from retrieval.context import pack
from retrieval.embed import ScriptedEmbedder
from retrieval.pipeline import Library
from retrieval.ranking import QueryTerms
from retrieval.search import Ranked
from retrieval.sentences import split_sentences
from retrieval.types import Passage, passage_in_prompt
from retrieval.units import Unit, scored


def count_tokens(text: str) -> int:
    return len(text.split())


def passage(number: int, n_words: int = 10) -> Passage:
    text = " ".join(["word"] * n_words)
    return Passage(number, "d", "d.txt", text, number * 100, number * 100 + len(text), n_words, 0.5)


def render(label: str, item: Passage) -> int:
    return item.tokens + 2


def test_whole_passages_go_in_best_first() -> None:
    items = [passage(1), passage(2), passage(3)]
    packed = pack(items, 25, render)
    assert [item.passage for item in packed.passages] == items[:2]
    assert [item.label for item in packed.passages] == ["1", "2"]
    assert packed.tokens == 24
    assert packed.left_out == (items[2],)
    assert not packed.whole


def test_a_smaller_passage_takes_the_place_of_one_that_does_not_fit() -> None:
    items = [passage(1), passage(2, 50), passage(3)]
    packed = pack(items, 25, render)
    assert [item.passage.chunk_id for item in packed.passages] == [1, 3]
    assert [item.label for item in packed.passages] == ["1", "2"]
    assert packed.left_out == (items[1],)


@pytest.mark.parametrize("budget", range(0, 80, 7))
def test_no_budget_is_exceeded(budget: int) -> None:
    items = [passage(i, 3 + i * 5 % 17) for i in range(9)]
    packed = pack(items, budget, render)
    assert packed.tokens <= budget
    assert len(packed.passages) + len(packed.left_out) == 9


def test_all_documents_go_in_whole_when_they_fit() -> None:
    scope = [passage(i) for i in range(4)]
    packed = pack(scope[2:3], 48, render, scope=scope)
    assert packed.whole
    assert [item.passage for item in packed.passages] == scope
    assert not pack(scope[2:3], 47, render, scope=scope).whole


TOPICS = ("harbour", "orchard", "library", "railway", "theatre", "glacier")


def long_text() -> str:
    parts = []
    for topic in TOPICS:
        parts.append(f"# About the {topic}\n")
        parts += [f"There is a corner number {i} that people like." for i in range(60)]
        parts.append(f"The {topic} keeper was called K{topic} and lived there.\n")
    return "\n".join(parts)


@pytest.fixture(params=[False, True], ids=["words", "vectors"])
def library(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Library]:
    made = Library(
        tmp_path / "library",
        embedder=ScriptedEmbedder(dimensions=512) if request.param else None,
        count_tokens=count_tokens,
    )
    for name, text in {"long.md": long_text(), "short.md": "The harbour wall is old."}.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
        assert made.ingest(tmp_path / name).status == "indexed"
    yield made
    made.close()


@pytest.mark.parametrize("budget", [60, 150, 400, 900])
def test_narrowed_passages_are_whole_sentences_of_the_document(
    library: Library, budget: int
) -> None:
    for topic in TOPICS:
        found = library.search(f"What was the {topic} keeper called?", budget_tokens=budget)
        assert sum(count_tokens(passage_in_prompt("20", item)) for item in found) <= budget
        for item in found:
            text = library.document_text(item.document_id)
            assert item.text == text[item.start : item.end]
            begins, ends = zip(*split_sentences(text), strict=True)
            assert item.start in begins and item.end in ends
        assert budget < 100 or any(f"K{topic}" in item.text for item in found)


def test_narrowed_passages_do_not_overlap_and_neighbours_are_one(library: Library) -> None:
    found = library.search("harbour corner number 3 4 5", budget_tokens=300)
    spans = sorted((item.start, item.end) for item in found if item.document == "long.md")
    for (_, end), (start, _) in pairwise(spans):
        assert start > end + 1


def test_a_narrowed_passage_stands_under_its_own_heading(tmp_path: Path) -> None:
    filler = "There is nothing of note in this long line of words here. " * 8
    parts = [
        f"## Part {i}\n\n{filler}\n\nThe keeper{i} owned a blue lamp{i}.\n\n{filler}\n"
        for i in range(12)
    ]
    library = Library(tmp_path / "library", embedder=None, count_tokens=count_tokens)
    (tmp_path / "p.md").write_text("# Book\n\n" + "\n".join(parts), encoding="utf-8")
    library.ingest(tmp_path / "p.md")
    inside = 0
    for i in range(12):
        best = library.search(f"keeper{i} lamp{i}", budget_tokens=60)[0]
        assert f"keeper{i} owned" in best.text
        if not best.text.startswith("#"):
            inside += 1
            assert best.context.endswith(f"Part {i}")
    assert inside > 6
    library.close()


def test_nothing_is_cut_when_all_fits(library: Library) -> None:
    question = "the railway keeper"
    assert library.search(question, budget_tokens=100_000) == library.search(question)


def test_table_rows_are_not_cut_from_their_header(tmp_path: Path) -> None:
    library = Library(tmp_path / "library", embedder=None, count_tokens=count_tokens)
    rows = [f"| city{i} | {i} people | the north |" for i in range(400)]
    text = "\n".join(["| city | people | region |", "|---|---|---|", *rows])
    (tmp_path / "t.md").write_text(text, encoding="utf-8")
    library.ingest(tmp_path / "t.md")
    for budget in (120, 300, 900):
        for number in (5, 40, 250, 399):
            found = library.search(f"city{number} people", budget_tokens=budget)
            assert any(f"| city{number} |" in item.text for item in found)
            for item in found:
                assert "| city | people | region |" in (item.context, item.text.splitlines()[0])
                assert all(line in text.splitlines() for line in item.text.splitlines())
    library.close()


@pytest.mark.parametrize("name", ["short.txt", "rows.csv"])
def test_a_chunk_that_does_not_fit_is_cut_whatever_it_is_of(tmp_path: Path, name: str) -> None:
    library = Library(tmp_path / "library", embedder=None, count_tokens=count_tokens)
    filler = "There is nothing of note here, in this line.\n" * 30
    (tmp_path / name).write_text(f"{filler}The keeper owned, a blue lamp.\n{filler}", "utf-8")
    assert library.ingest(tmp_path / name).status == "indexed"
    found = library.search("What did the keeper own?", budget_tokens=60)
    assert any("blue lamp" in item.text for item in found)
    library.close()


def test_the_rest_beside_whole_documents_goes_to_the_stretch_that_answers(tmp_path: Path) -> None:
    """Three short documents of which one fits whole; a rest of the budget is not left empty."""
    library = Library(tmp_path / "library", embedder=None, count_tokens=count_tokens)
    for name in ("first", "second", "third"):
        said = "The lamp of Carrick burns oil. " if name == "first" else ""
        filler = [f"Sentence {n} of the {name} says little about ships." for n in range(12)]
        filler.insert(7, f"{said}The {name} lamp of Carrick is lit by its keeper.")
        (tmp_path / f"{name}.txt").write_text(" ".join(filler), encoding="utf-8")
        library.ingest(tmp_path / f"{name}.txt")
    found = library.search("Who lights the lamp of Carrick that burns oil?", budget_tokens=200)
    assert [p.document for p in found[:1]] == ["first.txt"]
    assert found[0].text == (tmp_path / "first.txt").read_text("utf-8")
    parts = found[1:]
    assert parts
    assert "lamp of Carrick is lit by its keeper" in parts[0].text
    assert sum(count_tokens(passage_in_prompt("20", p)) for p in found) <= 200
    library.close()


def test_whole_chunks_of_a_long_document_do_not_lift_each_other_over_better_ones() -> None:
    """Each would lend the next one of its score, though neither is as good as the other text."""

    def whole(document: str, start: int, score: float) -> Unit:
        passage = Passage(1, document, document, "x" * 9, start, start + 9, 3, score)
        return Unit(Ranked(passage), start, start + 9, 3, frozenset(), -1.0, 2)

    units = [whole("long", 0, 0.6), whole("long", 10, 0.6), whole("short", 0, 0.7)]
    best = max(scored(units, QueryTerms({}), dense=False), key=lambda unit: unit.score)
    assert best.document_id == "short"
