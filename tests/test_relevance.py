"""Scores of texts by their own words and by those around them."""

from __future__ import annotations

import random

import numpy as np
import pytest

from chatbot.relevance import REACH_TOKENS, SPARE_TEXTS, TermIndex
from retrieval.words import lexical_terms


def index_of(texts: list[str], tokens: int = 10) -> TermIndex:
    index = TermIndex()
    for text in texts:
        index.add(lexical_terms(text), tokens)
    return index


def test_the_text_with_the_words_scores_best() -> None:
    index = index_of(["blue sky", "green grass", "red rose"])
    assert int(np.argmax(index.own(index.weights("the grass")))) == 1


def test_words_around_a_text_count_and_fade_with_distance() -> None:
    index = index_of(["filler words"] * 100 + ["grass"] + ["filler words"] * 100, tokens=20)
    near = index.near(index.weights("grass"))
    assert near[100] == near.max()
    assert near[105] > near[115] > near[130] > 0
    assert near[100 - 5 * REACH_TOKENS // 20] == 0


def test_several_words_beat_one_repeated_word() -> None:
    index = index_of(["grass grass grass"] + ["x"] * 400 + ["grass rose"])
    near = index.near(index.weights("grass rose"))
    assert near[-1] > near[0]


def test_truncated_texts_are_gone_and_others_as_if_they_had_never_been() -> None:
    index = index_of(["blue sky", "green grass", "red rose"])
    index.truncate(1)
    index.add(lexical_terms("white snow"), 10)
    same = index_of(["blue sky", "white snow"])
    assert index.weights("grass") == {}
    for query in ("snow", "blue", "sky and snow"):
        assert index.weights(query) == same.weights(query)
        assert np.array_equal(index.own(index.weights(query)), same.own(same.weights(query)))
        assert np.array_equal(index.near(index.weights(query)), same.near(same.weights(query)))


def test_words_shared_by_the_best_texts_are_added_with_little_weight() -> None:
    index = index_of(["grass mower", "grass mower", "sky cloud", "sky cloud", "rain"] * 3, 100)
    weights = index.weights("grass")
    wide = index.expanded(weights, index.own(weights))
    assert wide["grass"] == weights["grass"]
    assert 0 < wide["mower"] < wide["grass"]
    assert "cloud" not in wide


@pytest.mark.parametrize("query", ["집", "집은 어디야?", "우리 집"])
def test_a_word_of_one_syllable_is_searched(query: str) -> None:
    index = index_of(["우리 집 주소는 서울이다", "오늘은 날씨가 좋다", "회의는 세 시다"])
    assert int(np.argmax(index.own(index.weights(query)))) == 0


def test_an_empty_index_and_a_query_without_words() -> None:
    index = TermIndex()
    assert index.weights("grass") == {}
    assert index_of(["grass"]).weights("?!") == {}


def test_texts_put_in_and_taken_out_anywhere_score_as_in_a_fresh_index() -> None:
    chance = random.Random(3)
    vocabulary = [f"word{n}" for n in range(30)]
    index, texts = TermIndex(), list[str]()
    for _ in range(300):
        start = chance.randrange(len(texts) + 1)
        end = min(len(texts), start + chance.randrange(8))
        new = [" ".join(chance.choices(vocabulary, k=5)) for _ in range(chance.randrange(7))]
        texts[start:end] = new
        index.splice(start, end, [(lexical_terms(text), 10) for text in new])
    fresh = index_of(texts)
    query = "word1 word2 word7"
    assert index.weights(query) == fresh.weights(query)
    for one, other in (
        (index.own(index.weights(query)), fresh.own(fresh.weights(query))),
        (index.near(index.weights(query)), fresh.near(fresh.weights(query))),
        (index.coverage(query), fresh.coverage(query)),
        (index.spread(index.coverage(query)), fresh.spread(fresh.coverage(query))),
    ):
        assert one.tolist() == other.tolist()
    scores = index.own(index.weights(query))
    assert index.expanded({}, scores) == fresh.expanded({}, scores)
    assert len(index._lengths) <= 2 * len(texts) + SPARE_TEXTS
