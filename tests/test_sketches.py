"""Many vectors are searched by sketches first: what is found is that of a search through all."""

from __future__ import annotations

import numpy as np
import pytest

from retrieval.embed import Vectors
from retrieval.sketches import Sketches
from retrieval.vectors import Ids, VectorIndex

DIMENSIONS, N_ROWS, N_RESULTS = 96, 12_000, 25


def rows(count: int, seed: int = 0, dimensions: int = DIMENSIONS) -> Vectors:
    """Random directions, which have no near neighbours: the worst case."""
    made = np.random.default_rng(seed).standard_normal((count, dimensions), dtype=np.float32)
    return np.asarray(made / np.linalg.norm(made, axis=1, keepdims=True), dtype=np.float32)


ROWS = rows(N_ROWS)


def filled(wanted: Ids, *, sketched_from: int) -> VectorIndex:
    index = VectorIndex(sketched_from=sketched_from)
    index.follow(wanted, lambda ids: ROWS[ids])
    return index


def test_sketches_find_what_a_search_through_all_finds() -> None:
    ids = np.arange(N_ROWS)
    quick, exact = (filled(ids, sketched_from=n) for n in (1_000, N_ROWS + 1))
    shares, firsts = [], 0
    for query in rows(40, seed=1):
        found, wanted = quick.search(query, N_RESULTS), exact.search(query, N_RESULTS)
        cosines = dict(wanted)
        both = [(i, cosine) for i, cosine in found if i in cosines]
        assert all(cosine == cosines[i] for i, cosine in both)
        shares.append(len(both) / N_RESULTS)
        firsts += found[0] == wanted[0]
    print(f"agreement with the exact search {np.mean(shares):.4f}, lowest {min(shares):.2f}")
    assert np.mean(shares) >= 0.99
    assert firsts == 40


def test_sketches_follow_deletes_and_additions_in_any_order() -> None:
    """The same as made at once from what should be there, though rows came otherwise."""
    random = np.random.default_rng(2)
    index = filled(np.arange(0, 6_000), sketched_from=1_000)
    for _ in range(4):
        wanted = np.sort(random.choice(N_ROWS, 5_000, replace=False))
        index.follow(wanted, lambda ids: ROWS[ids])
    fresh = filled(wanted, sketched_from=1_000)
    held = set(wanted.tolist())
    for number in wanted[::250]:
        found = index.search(ROWS[number], N_RESULTS)
        assert found[0][0] == number
        assert {i for i, _ in found} <= held
        assert sorted(found) == sorted(fresh.search(ROWS[number], N_RESULTS))


def test_few_rows_and_rows_of_odd_width_are_all_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr(Sketches, "nearest", none)
    assert filled(np.arange(999), sketched_from=1_000).search(ROWS[7], 1)[0][0] == 7
    odd = rows(50, dimensions=7)
    index = VectorIndex(sketched_from=10)
    index.follow(np.arange(50), lambda ids: odd[ids])
    assert index.search(odd[3], 1)[0][0] == 3
    shrunk = filled(np.arange(1_500), sketched_from=1_000)
    shrunk.follow(np.arange(500), lambda ids: ROWS[ids])
    assert shrunk.search(ROWS[499], 1)[0][0] == 499


def test_a_search_among_some_rows_finds_all_of_them() -> None:
    """However far they are from the query."""
    index = filled(np.arange(N_ROWS), sketched_from=1_000)
    some = list(range(0, N_ROWS, 600))
    assert sorted(i for i, _ in index.search(ROWS[1], 100, some)) == some


def test_another_width_takes_the_place_of_the_old_one() -> None:
    index = filled(np.arange(2_000), sketched_from=1_000)
    other = rows(2_000, dimensions=32)
    index.follow(np.arange(2_000, 4_000), lambda ids: other[ids - 2_000])
    assert index.search(other[5], 1)[0][0] == 2_005
    assert index.search(ROWS[5], 1) == []
