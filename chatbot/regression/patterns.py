"""Regular expressions that people write, with limits of length and time. Knows no suite."""

from __future__ import annotations

import regex

MAX_PATTERN_CHARACTERS = 1_000
SEARCH_S = 1.0
PROBE_S = 0.25
_PROBE_CHARACTERS = 2_000


class PatternError(ValueError):
    """One sentence: why a pattern cannot be used."""


def compiled(pattern: str) -> regex.Pattern[str]:
    """The pattern, ready to search. Raises PatternError, also for one that is hopelessly slow."""
    if len(pattern) > MAX_PATTERN_CHARACTERS:
        raise PatternError(
            f"the pattern has {len(pattern)} characters of {MAX_PATTERN_CHARACTERS} at most; "
            "shorten it."
        )
    try:
        made = regex.compile(pattern, regex.MULTILINE)
    except (regex.error, OverflowError, RecursionError) as error:
        raise PatternError(f"the pattern is not valid: {error}.") from error
    for probe in _probes(pattern):
        try:
            made.search(probe, timeout=PROBE_S)
        except TimeoutError:
            raise PatternError(
                f"the pattern takes too long on a text of {len(probe)} characters; do not nest "
                "repetitions such as (a+)+."
            ) from None
    return made


def found(pattern: regex.Pattern[str], text: str) -> bool:
    """Whether the pattern is somewhere in `text`. Raises PatternError when it takes too long."""
    try:
        return pattern.search(text, timeout=SEARCH_S) is not None
    except TimeoutError:
        raise PatternError(
            f"the pattern took longer than {SEARCH_S:g} s on a text of {len(text)} characters"
        ) from None


def _probes(pattern: str) -> list[str]:
    """Texts on which patterns that backtrack without end do so: runs of their own characters."""
    letters = {character for character in pattern if character.isalnum() or character.isspace()}
    seeds = [*sorted(letters)[:12], "a", "0", " ", "가", "ab ", "가 "]
    return [(seed * _PROBE_CHARACTERS)[:_PROBE_CHARACTERS] + "\x00!" for seed in seeds]
