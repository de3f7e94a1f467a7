"""All checks of whether a summary joins what its source joins, in one list. Knows texts only."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from chatbot.gate_binding import (
    decided_otherwise,
    exchanged,
    of_another,
    reversed_preferences,
    turned_round,
)
from chatbot.gate_doers import done_by_somebody_else, kin_of_another
from chatbot.gate_figures import out_of_place
from chatbot.gate_names import other_names
from chatbot.gate_persons import done_by_another, other_kin, said_of_another
from chatbot.gate_rates import bound_otherwise
from chatbot.gate_replaced import (
    ability_reversed,
    excluded,
    feelings_reversed,
    near_misses,
    put_in_place,
)
from chatbot.gate_roles import of_the_assistant, swapped_roles
from chatbot.gate_roles_held import grave_news, roles_held
from chatbot.gate_strength import of_other_amount, of_other_state
from chatbot.gate_traits import traits_reversed
from chatbot.gate_ways import from_and_to, opposite_verbs, other_way

_CHECKS: tuple[tuple[str, Callable[[str, str], Iterator[str]]], ...] = (
    ("turned round", turned_round),
    ("turned round", decided_otherwise),
    ("turned round", ability_reversed),
    ("turned round", feelings_reversed),
    ("turned round", excluded),
    ("turned round", traits_reversed),
    ("turned round", from_and_to),
    ("turned round", other_way),
    ("turned round", opposite_verbs),
    ("exchanged", exchanged),
    ("exchanged", reversed_preferences),
    ("exchanged", out_of_place),
    ("bound otherwise", bound_otherwise),
    ("of another", done_by_somebody_else),
    ("of another", kin_of_another),
    ("another amount", of_other_amount),
    ("another state", of_other_state),
    ("of another", of_another),
    ("of another", other_kin),
    ("of another", roles_held),
    ("invented", grave_news),
    ("of another", said_of_another),
    ("of another", done_by_another),
    ("roles exchanged", swapped_roles),
    ("in the place of another", put_in_place),
    ("in the place of another", near_misses),
    ("in the place of another", other_names),
)
"""Checks of (summary, all of its source), each with how its reasons begin."""


def joined_wrongly(text: str, source: str, replies: str) -> Iterator[str]:
    """Reasons against a summary of `source`, whose replies are `replies`."""
    for label, check in _CHECKS:
        yield from (f"{label}: {part}" for part in check(text, source))
    yield from (f"of another: {part}" for part in of_the_assistant(text, replies))
