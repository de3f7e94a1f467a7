"""All assertions by name, and reading them from a suite. Knows no runner."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from chatbot.regression.checks_limits import BUILT_IN, LIMIT_RULES
from chatbot.regression.checks_memory import MEMORY_RULES
from chatbot.regression.checks_text import TEXT_RULES
from chatbot.regression.faults import shown, unknown
from chatbot.regression.rules import Assertion, Bounds, Rule
from chatbot.regression.yaml_lines import Located, Place

RULES: dict[str, Rule] = {**TEXT_RULES, **MEMORY_RULES, **LIMIT_RULES}
NOT = "not-"


def read_assertions(
    located: Located, place: Place, written: Sequence[Any]
) -> tuple[Assertion, ...]:
    """The assertions that stand at a place of a suite. Raises SuiteError."""
    return tuple(_read(located, (*place, n), item) for n, item in enumerate(written))


def built_in() -> tuple[Assertion, ...]:
    """What holds in every case without being written."""
    return tuple(
        Assertion(name, False, value, value, RULES[name], "built in", 0) for name, value in BUILT_IN
    )


def layered(*layers: Sequence[Assertion]) -> tuple[Assertion, ...]:
    """Assertions of a case, its file and all suites: a limit replaces those of later layers.

    Only limits replace each other: two texts that must be in the prompt are two assertions.
    """
    kept: list[Assertion] = []
    for layer in layers:
        limited = {(one.name, one.negated) for one in kept if _is_limit(one)}
        kept += [one for one in layer if (one.name, one.negated) not in limited]
    return tuple(kept)


def _is_limit(one: Assertion) -> bool:
    return one.is_invariant and isinstance(one.value, Bounds | bool)


def _read(located: Located, place: Place, item: Any) -> Assertion:
    if not isinstance(item, dict) or len(item) != 1:
        sentence = f"an assertion is one 'name: value', not {shown(item)}."
        raise located.fault(place, sentence)
    [(full, value)] = item.items()
    negated = full.startswith(NOT)
    name = full.removeprefix(NOT)
    place = (*place, full)
    if name not in RULES:
        raise located.fault(place, unknown("assertion", full, _names(negated)))
    rule = RULES[name]
    try:
        read = rule.read(value)
    except ValueError as error:
        wanted = str(error)
        sentence = wanted if wanted.startswith("the pattern") else f"must be {wanted}"
        raise located.fault(place, f"{full} {sentence.rstrip('.')}, not {shown(value)}.") from error
    return Assertion(name, negated, value, read, rule, located.file, located.line(place))


def _names(negated: bool) -> list[str]:
    return [NOT + name for name in RULES] if negated else list(RULES)
