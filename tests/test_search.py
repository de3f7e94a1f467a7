"""Search: keywords in Korean and English, fusion, duplicates, scope, relevance, edges."""

from __future__ import annotations

import random
import unicodedata
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from retrieval import ranking
from retrieval.embed import Embedder, ScriptedEmbedder
from retrieval.pipeline import Library
from retrieval.ranking import (
    QueryTerms,
    fuse,
    match_text,
    min_max,
    query_factors,
    score_matches,
    weigh,
    word_heads,
)
from retrieval.search import Ranked, drop_contained
from retrieval.types import Passage
from retrieval.words import content_terms, folded, lexical_terms

Fill = Callable[..., Library]


@pytest.fixture
def fill(tmp_path: Path) -> Iterator[Fill]:
    """Makes a library of texts: `fill("text", ...)` or `fill(name="text", embedder=...)`."""
    made: list[Library] = []

    def build(*texts: str, embedder: Embedder | None = None, **named: str) -> Library:
        library = Library(
            tmp_path / f"library{len(made)}",
            embedder=embedder,
            count_tokens=lambda text: len(text.split()),
        )
        made.append(library)
        files = {f"d{number}.txt": text for number, text in enumerate(texts)}
        files |= {f"{name}.txt": text for name, text in named.items()}
        for name, text in files.items():
            path = tmp_path / name
            path.write_text(text, encoding="utf-8")
            assert library.ingest(path).status == "indexed"
        return library

    yield build
    for library in made:
        library.close()


PLAIN = [
    "The committee met on Monday.",
    "The train leaves at nine.",
    "The garden needs water.",
    "The price rose in March.",
]


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("서울", "우리는 내일 서울에서 만난다."),
        ("배포", "새 판의 배포를 마쳤다."),
        ("4242호", "회의실은 4242호에 있다."),
        ("Notion", "모든 문서는 Notion에 둔다."),
        (unicodedata.normalize("NFD", "휴가"), "직원은 휴가를 쓴다."),
        ("adaptation", "Two adaptations were made."),
        ("CAFÉ", "The cafe opens late."),
        ("東京", "会議は東京で開かれる。"),
    ],
)
def test_words_are_found_in_every_form(fill: Fill, query: str, text: str) -> None:
    """BC-73: bare nouns in text with particles, mixed scripts, English beside them."""
    library = fill(*PLAIN, text)
    best = library.search(query)[0]
    assert best.text == text
    assert 0 < best.score <= 1


def test_an_nfd_text_is_found_by_an_nfc_query(fill: Fill) -> None:
    """BC-73: whoever composed the characters."""
    library = fill(*PLAIN, unicodedata.normalize("NFD", "직원은 휴가를 쓴다."))
    assert len(library.search("휴가")) == 1


@pytest.mark.parametrize("count", [0, 1, 3])
@pytest.mark.parametrize("top_k", [5, 1000])
def test_more_results_asked_than_there_are(fill: Fill, count: int, top_k: int) -> None:
    """BC-69: no padding, no repeats, nothing on nothing."""
    library = fill(*PLAIN[:count], embedder=ScriptedEmbedder())
    for _ in range(25):
        found = library.search("the committee and the train in the garden", top_k=top_k)
        ids = [passage.chunk_id for passage in found]
        assert len(ids) == len(set(ids)) <= count
        assert all(passage.text in PLAIN for passage in found)


@pytest.mark.parametrize(
    "query", ["", "  ", "?!", '"', "a OR b NOT c*", "terms:x", "(", "x" * 9000]
)
def test_odd_queries_do_no_harm(fill: Fill, query: str) -> None:
    assert isinstance(fill(*PLAIN).search(query), list)


def test_nothing_relevant_finds_nothing(fill: Fill) -> None:
    library = fill(*PLAIN, embedder=ScriptedEmbedder(dimensions=4096))
    assert library.search("quantum chromodynamics") == []
    assert library.search("how is the") == []
    assert fill().search("garden") == []


def test_the_scope_is_kept(fill: Fill) -> None:
    library = fill(*PLAIN, embedder=ScriptedEmbedder())
    ids = {info.name: info.id for info in library.documents()}
    found = library.search("garden train price", document_ids=[ids["d1.txt"], ids["d3.txt"]])
    assert {passage.document for passage in found} == {"d1.txt", "d3.txt"}
    assert library.search("garden", document_ids=[]) == []
    assert library.search("garden", document_ids=["unknown"]) == []


@pytest.mark.parametrize(
    ("other", "stays"),
    [
        ("The trip  to Busan costs 15 dollars!", False),
        ("We know: the trip to Busan costs 15 dollars. Bring it.", False),
        ("The trip to Busan costs 25 dollars.", True),
        ("The trip to Busan never costs 15 dollars.", True),
        ("The Busan trip is 15 dollars.", True),
        ("The trip to Busan costs 150 dollars.", True),
    ],
)
def test_only_contained_texts_are_dropped(fill: Fill, other: str, stays: bool) -> None:
    library = fill("The trip to Busan costs 15 dollars.", other)
    assert len(library.search("trip Busan dollars")) == (2 if stays else 1)


def test_of_contained_texts_the_longer_one_stays(fill: Fill) -> None:
    longer = "Busan is far. The trip costs 15 dollars. Take a coat with you."
    library = fill("The trip costs 15 dollars.", longer, *PLAIN)
    assert library.search("trip dollars")[0].text == longer


def test_a_contained_text_is_dropped_whatever_its_rank() -> None:
    def ranked(number: int, text: str, score: float) -> Ranked:
        return Ranked(Passage(number, "d", "d.txt", text, 0, len(text), 3, score))

    long, short = "One two three. Four five.", "two three, FOUR"
    for first, second in ((long, short), (short, long)):
        (only,) = drop_contained([ranked(1, first, 0.9), ranked(2, second, 0.4)], 20)
        assert (only.passage.text, only.score) == (long, 0.9)
    three = [ranked(1, "two", 0.9), ranked(2, "four", 0.8), ranked(3, long, 0.1)]
    assert [(item.passage.text, item.score) for item in drop_contained(three, 20)] == [(long, 0.9)]


@pytest.mark.parametrize("seed", range(40))
def test_what_stays_contains_all_that_is_dropped_and_nothing_else_that_stays(seed: int) -> None:
    rng = random.Random(seed)
    words = ["One", "two", "THREE,", "넷은", "다섯.", "café", "i.e.", "3.14", "foo_bar\nSix"]
    texts = [" ".join(rng.choices(words, k=rng.randint(1, 12))) for _ in range(30)]
    ranked = [
        Ranked(Passage(number, "d", "d.txt", text, 0, len(text), 3, 1.0 - number / 100))
        for number, text in enumerate(texts)
    ]
    items = drop_contained(ranked, 30)
    kept = [folded(item.passage.text) for item in items]
    assert len(kept) < len(texts)
    assert all(any(folded(text) in other for other in kept) for text in texts)
    assert not any(a in b for i, a in enumerate(kept) for j, b in enumerate(kept) if i != j)
    assert [item.score for item in items] == sorted((i.score for i in items), reverse=True)
    for item, words in zip(items, kept, strict=True):
        inside = [i.score for i in ranked if folded(i.passage.text) in words]
        assert item.score in inside
    for n_passages in (0, 1, 4):
        assert drop_contained(ranked, n_passages) == items[:n_passages]


def test_an_english_only_model_has_no_say_in_korean(fill: Fill) -> None:
    texts = [*PLAIN, "휴가는 해마다 열다섯 날이다."]
    with_model = fill(*texts, embedder=ScriptedEmbedder(english_only=True)).search("휴가 며칠")
    without = fill(*texts).search("휴가 며칠")
    assert [p.text for p in with_model] == [p.text for p in without] != []


def test_vectors_find_what_words_do_not(fill: Fill) -> None:
    class Synonyms(ScriptedEmbedder):
        def embed_query(self, text: str):  # type: ignore[no-untyped-def]
            return super().embed_query(text.replace("locomotive", "train leaves"))

    library = fill(*PLAIN, embedder=Synonyms(dimensions=4096))
    assert library.search("locomotive")[0].text == "The train leaves at nine."
    assert fill(*PLAIN).search("locomotive") == []


def test_a_document_that_the_best_one_names_is_lifted(fill: Fill) -> None:
    noise = {f"n{i}": f"Story {i}\n\nThe film of year {i} was long." for i in range(30)}
    library = fill(
        film="River Song\n\nThis film was written by Ada Vermeer.",
        writer="Ada Vermeer\n\nBorn in Utrecht, she grew up on a farm.",
        **noise,
    )
    found = library.search("Where was the writer of the film River Song born?")
    assert [passage.document for passage in found[:2]] == ["film.txt", "writer.txt"]
    ids = {info.name: info.id for info in library.documents()}
    only = library.search("film River Song", document_ids=[ids["film.txt"]])
    assert [passage.document for passage in only] == ["film.txt"]


def test_particles_and_question_words_count_less() -> None:
    factors = query_factors("임종석이 태어난 곳은 what")
    assert factors["석이"] < factors["종석"] == 1.0
    assert factors["what"] == 0.5


def scores(query: QueryTerms, *texts: str) -> list[float]:
    return score_matches(query, [match_text(query, text) for text in texts])


@pytest.mark.parametrize("most", [0, 40])
def test_each_place_of_a_term_is_found_in_its_sentence(
    most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ranking, "MAX_LOOKED_FOR", most)
    query = weigh("아 tax the law", {"아": 1, "tax": 1, "law": 1, "the": 9}, 10)
    match = match_text(query, "\ntax tax taxi 아 아 아\n\nlaw the tax\nsaw")
    assert match.counts == {"아": 3, "tax": 3, "law": 1, "the": 1} and match.n_terms == 10
    weights = query.weights
    best = max(weights["tax"] + weights["아"], weights["law"] + weights["the"] + weights["tax"])
    assert match.together == pytest.approx(best)
    assert match_text(query, "") == match_text(query, "\n") != match_text(query, "x")


@pytest.mark.parametrize("end", ["", "\ncafé 집"])
def test_english_words_that_stand_side_by_side_count_more(end: str) -> None:
    query = weigh("river song", {"river": 1, "song": 1}, 10)
    apart, turned, lines, together = (
        match_text(query, f"{text}{end}").together
        for text in ("river a song", "song river", "a river\nsong", "a river song")
    )
    assert lines < apart == turned < together


def test_rare_words_and_one_dense_sentence_win() -> None:
    query = weigh("harbour tax law", {"harbour": 1, "tax": 50, "law": 50}, 100)
    assert query.weights["harbour"] > query.weights["tax"] > 0
    low, high = scores(query, "harbour a\ntax b\nlaw c", "harbour tax law\na\nb c")
    assert high > low > 0


def test_weights_stay_positive_in_the_smallest_collection() -> None:
    assert all(weight > 0 for weight in weigh("a b", {"a": 1, "b": 1}, 1).weights.values())


def test_each_word_has_one_head() -> None:
    terms = lexical_terms("쇼와 천황은 몇 대 왕 2017년 BTS 상")
    assert word_heads(terms) == ["쇼와", "천황", "몇", "대", "왕", "2017", "년", "bts", "상"]
    assert word_heads([]) == []


def test_korean_words_that_begin_alike_and_stand_together_count_more() -> None:
    """Pairs of syllables match inside of other words as well: 시행 in 도시행정."""
    texts = ["도시행정의 역사와 전국민", "행정 시행의 역사 국민 전체", "국민 전체의 시행 역사"]
    frequencies = {term: 1 for text in texts for term in lexical_terms(text)}
    query = weigh("시행 역사", frequencies, 30)
    inside, begins, together = scores(query, *(" ".join(lexical_terms(text)) for text in texts))
    assert inside < begins
    assert inside < together
    query = weigh("국민 전체", frequencies, 30)
    apart, together, both = scores(query, *(" ".join(lexical_terms(text)) for text in texts))
    assert apart < min(together, both)


def test_fusion_is_a_mix_of_stretched_scores() -> None:
    assert min_max([]) == []
    assert min_max([2.0, 2.0]) == [1.0, 1.0]
    assert min_max([0.0, 0.0]) == [0.0, 0.0]
    assert fuse([0.0, 10.0], [1.0, 0.0], 0.0) == [0.0, 1.0]
    assert fuse([0.0, 10.0], [1.0, 0.0], 1.0) == [1.0, 0.0]
    assert fuse([0.0, 10.0], [1.0, 0.0], 0.25) == [0.25, 0.75]


def test_terms() -> None:
    assert lexical_terms("서울에서 Cats") == ["서", "울", "에", "서", "서울", "울에", "에서", "cat"]
    assert content_terms("What is the harbour 서울?") == {"harbour", "서울"}
