"""The tree that the messages of a chat form, without the places where nothing is shown.

Knows the names of places and what they follow, but no message.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Tree:
    """`follows` has each shown place with the shown one before it, None for a first one.

    `at` leads from every place to the shown one that it is or lies behind, None if there is none.
    `circling` are the shown places that have no first one before them.
    """

    follows: Mapping[str, str | None]
    at: Mapping[str, str | None]
    circling: tuple[str, ...]

    def path(self, place: str) -> list[str]:
        """From the first shown place to this one."""
        return list(self.upwards(place))[::-1]

    def upwards(self, place: str) -> Iterator[str]:
        """From a shown place to the first one before it."""
        step: str | None = place
        while step is not None:
            yield step
            step = self.follows[step]

    def leaves(self) -> list[str]:
        """The places that no other follows, in their order."""
        followed = set(self.follows.values())
        return [place for place in self.follows if place not in followed]

    def last(self, current: str | None, time: Callable[[str], float]) -> str | None:
        """Where what was shown last ends: the newest place behind `current`, of all if there is
        none such. None in an empty tree.

        A chat that was left in its midst, or at its empty root, goes on to its end, for what
        comes after the end could be no version of anything.
        """
        leaves = self.leaves()
        shown = self.at.get(current) if current is not None else None
        if shown in leaves:
            return shown
        behind = [leaf for leaf in leaves if shown is not None and shown in self.upwards(leaf)]
        # Of equally old ones the last: programs write what is new to the end.
        return max(reversed(behind or leaves), key=time, default=None)


def tree_of(parents: Mapping[str, str | None], shown: Container[str]) -> Tree:
    """The tree of the shown places among these, each with its parent, which may be missing."""
    follows: dict[str, str | None] = {}
    at: dict[str, str | None] = {}
    circling: set[str] = set()
    for name in parents:
        trail = list(_unknown(parents, name, at))
        before = parents[trail[-1]] if trail else None
        if before in trail or before in circling:
            circling.update(trail)
            at.update(dict.fromkeys(trail))
            continue
        place = at.get(before) if before is not None else None
        for step in reversed(trail):
            if step in shown:
                follows[step] = place
                place = step
            at[step] = place
    ordered = {name: follows[name] for name in parents if name in follows}
    return Tree(ordered, at, tuple(n for n in parents if n in circling and n in shown))


def _unknown(parents: Mapping[str, str | None], name: str, known: Container[str]) -> Sequence[str]:
    """Upwards from a place, as far as places are there and not known yet, none twice."""
    trail: dict[str, None] = {}
    step: str | None = name
    while step is not None and step in parents and step not in known and step not in trail:
        trail[step] = None
        step = parents[step]
    return list(trail)
