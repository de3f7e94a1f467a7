"""What an assertion is: its name, the values that it takes, its check. Knows no single one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from chatbot.regression.faults import shown
from chatbot.regression.observation import Observation

Kind = Literal["said", "invariant"]


class Verdict(NamedTuple):
    """Whether a statement holds, and what was found, as the end of a sentence."""

    holds: bool
    found: str


class Wanted(NamedTuple):
    """What a fact assertion looks for, so that it can be told which layer lost it."""

    name: str
    is_in: Callable[[str], bool]


def nothing_wanted(value: Any) -> Sequence[Wanted]:
    """For assertions that look for no fact."""
    return ()


@dataclass(frozen=True, slots=True)
class Rule:
    """One kind of assertion.

    `read` turns what was written into the value to check, and raises ValueError with "a text"
    or the like for what cannot be. `wanted` names the facts that the assertion looks for.
    """

    kind: Kind
    read: Callable[[Any], Any]
    check: Callable[[Observation, Any], Verdict]
    wanted: Callable[[Any], Sequence[Wanted]] = nothing_wanted


@dataclass(frozen=True, slots=True)
class Assertion:
    """One assertion of a suite, with the place where it is written."""

    name: str
    negated: bool
    written: Any
    value: Any
    rule: Rule
    file: str
    line: int

    @property
    def text(self) -> str:
        """As it is written."""
        return f"{'not-' if self.negated else ''}{self.name}: {shown(self.written)}"

    @property
    def is_invariant(self) -> bool:
        return self.rule.kind == "invariant"

    def verdict(self, seen: Observation) -> Verdict:
        """Whether it holds for a turn."""
        verdict = self.rule.check(seen, self.value)
        return Verdict(verdict.holds != self.negated, verdict.found)

    @property
    def facts(self) -> Sequence[Wanted]:
        """The facts whose way through the layers is worth telling when this does not hold."""
        return () if self.negated else self.rule.wanted(self.value)


def a_text(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        hint = "; contains-any and contains-all take lists" if isinstance(value, list) else ""
        raise ValueError(f"one text in quotes{hint}")
    return value


def texts(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not value:
        raise ValueError("a list of texts")
    if not all(isinstance(item, str) and item.strip() for item in value):
        raise ValueError("a list of texts (put each in quotes)")
    return tuple(value)


def true_only(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError("true or false")
    return value


class Bounds(NamedTuple):
    """Least and most; None is no bound."""

    least: float | None
    most: float | None

    def hold(self, number: float) -> bool:
        low = self.least is None or number >= self.least
        return low and (self.most is None or number <= self.most)


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e15:
        raise ValueError("a number from 0, or a mapping of min and max")
    return float(value)


def bounds(natural: Literal["min", "max"], share: bool = False) -> Callable[[Any], Bounds]:
    """A reader of numbers: a bare one is the `natural` bound."""

    def read(value: Any) -> Bounds:
        written = value if isinstance(value, dict) else {natural: value}
        if not written or set(written) - {"min", "max"}:
            raise ValueError("a number, or a mapping of min and max")
        numbers = {key: _number(item) for key, item in written.items()}
        least, most = numbers.get("min"), numbers.get("max")
        if share and any(number > 1 for number in numbers.values()):
            raise ValueError("a share from 0 to 1")
        if least is not None and most is not None and least > most:
            raise ValueError("a mapping whose min does not exceed its max")
        return Bounds(least, most)

    return read
