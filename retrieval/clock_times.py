"""Times of day, on the clock of 12 hours and that of 24. Pure."""

from __future__ import annotations

import re

TIME = re.compile(
    r"(?P<hour>\d{1,2})(?:"
    r"(?:[:.](?P<a>\d\d))?(?: o['’]clock)?"
    r" ?(?P<half>[ap]\.?m\b|in the (?:morning|afternoon|evening))"
    r"|:(?P<b>\d\d)(?!\d)| ?시(?!간|즌|리즈|대)(?: ?(?P<c>\d{1,2}) ?분| ?(?P<d>반)(?![가-힣]))?"
    r"| o['’]clock)",
    re.IGNORECASE,
)
_HALF_BEFORE = re.compile(r"(오전|아침|새벽|오후|저녁) ?$")
_MORNING = ("a", "in the m", "오전", "아침", "새벽")


def read_time(match: re.Match[str], before: str) -> tuple[str, frozenset[str]]:
    """The key and the readings of a time that TIME matched behind `before`."""
    hour = int(match["hour"])
    minute = int(match["a"] or match["b"] or match["c"] or (30 if match["d"] else 0))
    named = _HALF_BEFORE.search(before)
    half = (named[1] if named else match["half"] or "").lower()
    late = not half.startswith(_MORNING) if half else None
    if not half and match["hour"].startswith("0"):
        late = False  # so it is written on the clock of 24 hours only
    readings = {str(hour), str(minute)} | times_of(hour, minute, late)
    exact = late is not None or not 1 <= hour <= 12
    key = min(r for r in readings if r.startswith("t" if exact else "f"))
    return key, frozenset(readings)


def times_of(hour: int, minute: int, late: bool | None) -> set[str]:
    """Keys of a time of day: t on the clock of 24 hours, f on that of 12, if it may be either."""
    if hour > 12 or hour == 0:
        return {f"t{hour % 24}:{minute:02}"}
    halves = (False, True) if late is None else (late,)
    face = {f"f{hour}:{minute:02}"}
    return face | {f"t{hour % 12 + 12 * half}:{minute:02}" for half in halves}
