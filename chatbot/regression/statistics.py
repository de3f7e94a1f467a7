"""Statistics of repeated samples. Knows nothing of what they are of."""

from __future__ import annotations

import math

Z_95 = 1.959963984540054


def wilson(passes: int, samples: int, z: float = Z_95) -> tuple[float, float]:
    """Wilson's score interval of a share (E. B. Wilson, 1927); (0, 1) without samples."""
    if samples == 0:
        return 0.0, 1.0
    share, weight = passes / samples, z * z / samples
    middle = share + weight / 2
    half = z * math.sqrt(share * (1 - share) / samples + weight / (4 * samples))
    low, high = (middle - half) / (1 + weight), (middle + half) / (1 + weight)
    # Where nothing or everything passed, rounding must not leave the end out.
    return (low if passes else 0.0), (high if passes < samples else 1.0)


def fisher_worse(before: tuple[int, int], after: tuple[int, int]) -> float:
    """One-sided p of Fisher's exact test that the share of passes fell. Each is (passes, samples).

    The chance of so few passes after, or fewer, if both runs are of the same thing.
    """
    passes = before[0] + after[0]
    total, n_after = before[1] + after[1], after[1]
    if not before[1] or not n_after:
        return 1.0
    ways = math.comb(total, n_after)
    lowest = max(0, n_after - (total - passes))
    chance = sum(
        math.comb(passes, k) * math.comb(total - passes, n_after - k)
        for k in range(lowest, after[0] + 1)
    )
    return min(1.0, chance / ways)


def median(values: list[float]) -> float:
    """The middle value, 0 for none."""
    ordered = sorted(values)
    if not ordered:
        return 0.0
    middle = len(ordered) // 2
    if len(ordered) % 2:
        return ordered[middle]
    return (ordered[middle - 1] + ordered[middle]) / 2
