"""Narrowing of documents that change meanwhile, of tables, of code, and the order of its result."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from retrieval.narrow import narrow
from retrieval.pipeline import Library
from retrieval.search import Found, Ranked, search
from retrieval.types import CleanDocument, Passage, passage_in_prompt
from retrieval.units import UnitMaker

STORM = "Sentence number {} about the storm at Carrick is long enough. "


def count_tokens(text: str) -> int:
    return len(text.split())


Made = Callable[..., Library]


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Made]:
    libraries = []

    def make(**files: str) -> Library:
        library = Library(tmp_path / "library", embedder=None, count_tokens=count_tokens)
        for name, text in files.items():
            path = tmp_path / name.replace("_", ".")
            path.write_text(text, encoding="utf-8")
            assert library.ingest(path).status == "indexed"
        libraries.append(library)
        return library

    yield make
    for library in libraries:
        library.close()


def sentences(number: int, words: str = STORM) -> str:
    return "".join(words.format(n) for n in range(number))


def found_in(library: Library, query: str) -> Found:
    return search(library._index, None, query)


def narrowed(
    library: Library,
    found: Found,
    budget: int,
    *,
    document: Callable[[str], CleanDocument | None] | None = None,
    chunks: Callable[[str], list[Passage]] | None = None,
) -> list[Passage]:
    return narrow(
        found,
        budget,
        count_tokens=count_tokens,
        document=document or library._index.document,
        chunks=chunks or library.chunks,
    )


@pytest.mark.parametrize("budget", [60, 300, 560, 1100])
def test_of_a_document_that_is_deleted_meanwhile_nothing_is_shown(made: Made, budget: int) -> None:
    library = made(a_txt=sentences(400))
    found = found_in(library, "storm Carrick")
    assert narrowed(library, found, budget, document=lambda _: None) == []
    assert narrowed(library, found, budget, chunks=lambda _: []) == []


def test_the_other_documents_are_still_shown(made: Made) -> None:
    library = made(a_txt=sentences(400), b_txt=sentences(400, "Carrick {} keeps a lamp. "))
    gone = next(d.id for d in library.documents() if d.name == "a.txt")
    shown = narrowed(
        library,
        found_in(library, "storm Carrick lamp"),
        300,
        document=lambda i: None if i == gone else library._index.document(i),
    )
    assert {p.document for p in shown} == {"b.txt"}


@pytest.mark.parametrize("new", ["Salaries are secret now. " * 900, "Salaries."])
def test_of_a_document_that_is_replaced_meanwhile_nothing_is_shown(made: Made, new: str) -> None:
    library = made(a_txt=sentences(400))
    found = found_in(library, "storm Carrick")
    for budget in (60, 300, 560, 1100):
        shown = narrowed(
            library,
            found,
            budget,
            document=lambda i: replace(library._index.document(i), text=new),  # type: ignore[type-var]
        )
        assert shown == []


def test_parts_of_chunks_stand_where_their_score_says(made: Made) -> None:
    filler = "Sentence {} of it says little about ships. "
    lamp = "The lamp of Carrick burns oil, lit by its keeper"
    library = made(
        first_txt=f"{lamp}. " + sentences(6, filler),
        second_txt=f"{sentences(20, filler)}{lamp} Brown. {sentences(20, filler)}",
        third_txt=f"A lamp stands on a table. {sentences(5, filler)}",
    )
    question = "Who lights the lamp of Carrick that burns oil, the keeper?"
    for budget in (300, 380):
        found = library.search(question, budget_tokens=budget)
        assert all(before.score >= after.score for before, after in pairwise(found))
        names = [p.document for p in found]
        assert names[0] == "first.txt" and names[-1] == "third.txt" and "second.txt" in names
        whole = library.search(question)
        scores = {p.document: p.score for p in whole}
        assert all(p.score <= scores[p.document] for p in found)


ROWS = {
    "r_md": "# Returns\n\n| Item | Refund | Where |\n|---|---|---|\n"
    + "".join(f"| Article{i} | Yes. Within {i} days. Ask us | hall {i} |\n" for i in range(90)),
    "r_csv": "item,refund,where\n"
    + "".join(f"Article{i},Yes. Within {i} days. Ask us,hall {i}\n" for i in range(90)),
}


@pytest.mark.parametrize("name", list(ROWS))
@pytest.mark.parametrize("budget", [30, 60, 120, 515, 540, 700])
def test_rows_are_not_cut(made: Made, name: str, budget: int) -> None:
    library = made(**{name: ROWS[name]}, o_txt="Other text. " * 400)
    text = library.document_text(
        next(d.id for d in library.documents() if d.name == name.replace("_", "."))
    )
    found = library.search("How many days refund for Article37?", budget_tokens=budget)
    rows = [p for p in found if p.document != "o.txt"]
    assert rows
    for item in rows:
        assert not set(item.text.split("\n")) - set(text.split("\n"))
        assert "| refund |" in f"{item.context}\n{item.text}".casefold()
        assert any(c.isalnum() for c in item.text)
        assert count_tokens(passage_in_prompt("20", item)) <= budget


def test_a_row_that_is_longer_than_the_budget_is_cut_when_nothing_else_fits(made: Made) -> None:
    words = " ".join(f"word{i}" for i in range(300))
    library = made(t_csv=f"name,about\nKeeper,{words}\nCook,{words}\n")
    found = library.search("word77", budget_tokens=40)
    assert any("word77" in p.text for p in found)
    assert sum(count_tokens(passage_in_prompt("20", p)) for p in found) <= 40


def test_what_chunks_left_of_a_long_row_is_not_cut_while_others_fit(made: Made) -> None:
    long = " ".join(f"Word{i} ends. It goes on." for i in range(300))
    short = "".join(f"Cook{i},Short. Yes\n" for i in range(200))
    library = made(t_csv=f"name,about\nKeeper,{long}\n{short}")
    chunks = library.chunks(library.documents()[0].id)
    lines = {line for chunk in chunks for line in chunk.text.split("\n")}
    for budget in (120, 300, 480):
        found = library.search("Word77 Cook7", budget_tokens=budget)
        assert found and all(line in lines for p in found for line in p.text.split("\n"))


CODE = (
    "class Engine:\n    def start(self, lamp):\n        check = 1\n"
    + "".join(f"        self.value_{i} = compute_{i}(lamp, storm_{i})\n" for i in range(140))
    + "        # NOTE other values\n        self.keeper_noon = carrick(lamp)\n"
    + "".join(f"        self.more_{i} = compute_{i}(lamp, storm_{i})\n" for i in range(200))
)
KOREAN = "".join(f"등대{i}등대지기는석유를보관한다" for i in range(400))


@pytest.mark.parametrize("budget", [30, 50, 120, 400])
def test_code_is_cut_between_its_lines(made: Made, budget: int) -> None:
    library = made(e_py=CODE)
    lines = {line.strip() for line in CODE.splitlines()}
    found = library.search("keeper_noon carrick", budget_tokens=budget)
    assert "self.keeper_noon = carrick(lamp)" in found[0].text
    assert all(line.strip() in lines for p in found for line in p.text.splitlines())
    assert all("NOTE" not in p.context for p in found)


def test_text_without_stops_and_spaces_is_cut_too(tmp_path: Path) -> None:
    def count(text: str) -> int:
        return (len(text.encode()) + 3) // 4

    library = Library(tmp_path / "library", embedder=None, count_tokens=count)
    (tmp_path / "k.txt").write_text(KOREAN, encoding="utf-8")
    library.ingest(tmp_path / "k.txt")
    for budget in (60, 100, 300):
        found = library.search("등대지기 석유", budget_tokens=budget)
        assert found
        assert all(KOREAN[p.start : p.end] == p.text for p in found)
        assert sum(count(passage_in_prompt("20", p)) for p in found) <= budget
    library.close()


def test_stored_terms_that_do_not_match_the_sentences_are_made_anew(made: Made) -> None:
    library = made(a_txt=sentences(400))
    found = found_in(library, "storm Carrick")
    query = found.query
    item = found.ranked[0]
    expected = UnitMaker(query, count_tokens).stretches(item, 480, 300)
    older = Ranked(item.passage, f"sentence\n{item.lines}", item.hits, item.lexical)
    units = UnitMaker(query, count_tokens).stretches(older, 480, 300)
    assert [(u.start, u.end, u.matches) for u in units] == [
        (u.start, u.end, u.matches) for u in expected
    ]


def test_neighbours_with_many_empty_lines_between_are_one(made: Made) -> None:
    text = ("\n" * 30).join(STORM.format(n) for n in range(200))
    library = made(a_txt=text)
    found = library.search("storm Carrick number 7", budget_tokens=300)
    spans = sorted((p.start, p.end) for p in found)
    assert spans and all(text[end:start].strip() for (_, end), (start, _) in pairwise(spans))
