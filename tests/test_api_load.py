"""The load at the API, with few users for seconds: that it measures what it says."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.api_load import MIB, Load, growth_mib, measure, percentile


@pytest.mark.long
def test_a_small_load_is_answered_without_an_error(tmp_path: Path) -> None:
    load = Load(users=3, seconds=1.5, think_s=0.2, tokens_per_s=200.0)
    result = measure(load, tmp_path)
    assert result["errors"] == 0, result["first_errors"]
    assert result["turns"] >= 3 and 0 < result["own_p50_ms"] <= result["own_p95_ms"]
    assert result["memory_end_mib"] > 0


def test_growth_is_that_of_the_last_quarter_over_the_third() -> None:
    flat = [(float(n), (100 + (n < 10) * n) * MIB) for n in range(40)]
    assert growth_mib(flat) == 0
    rising = [(float(n), (100 + n) * MIB) for n in range(40)]
    assert growth_mib(rising) == 10
    assert growth_mib([(0.0, MIB)]) == 0
    assert percentile([], 0.95) == 0 and percentile([3, 1, 2], 0.5) == 2
    assert percentile(range(100), 0.95) == 95
