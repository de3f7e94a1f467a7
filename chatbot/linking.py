"""Which earlier fact a new one takes the place of, along chains of corrections. Pure.

Knows facts and their lines; `chatbot.corrections` tells which of two lines corrects the other.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from chatbot.contrasts import contrast
from chatbot.corrections import RECENT_LINES, Change, find_corrected
from chatbot.facts import MAX_EARLIER_CHARACTERS, STEP, Found, shortened
from chatbot.line_values import changed_values, values
from chatbot.messages import Fact
from chatbot.subjects import clues, same_owner, shares_subject

MOST_ALIKE = 40
"""Of the lines that share a word with a new one, so many of the newest are compared with it."""
_LEAST_BEFORE = 24
"""Characters of the line before a corrected one; shorter pieces say nothing."""


def linked(
    new: Sequence[Fact], before: Sequence[Fact] = (), listed: Sequence[Fact] = ()
) -> tuple[Found, ...]:
    """Each new fact with the one it corrects, among `before` and the new ones ahead of it.

    `before` holds facts from the beginning of the chat, oldest first, also those that no list
    carries any more: what has fallen out of the cap can be corrected all the same. `listed` are
    those of the list, with what they were before.
    """
    current = {fact.id: fact for fact in listed}
    known = [current.pop(fact.id, fact) for fact in before]
    linker = Linker()
    for fact in (*current.values(), *known):
        linker.add(fact)
    return tuple(linker.link(fact) for fact in new)


@lru_cache(maxsize=8192)
def _change(line: str, earlier: tuple[str, ...]) -> Change | None:
    # Of a chat that is linked anew after an edit all but the last lines are as they were.
    return find_corrected(line, earlier)


@dataclass(frozen=True, slots=True)
class _Step:
    """What a fact corrects: the number of another, and which value of it by which."""

    number: int
    old: str
    new: str


class Linker:
    """Finds what facts correct among those before them, without comparing each with each."""

    def __init__(self) -> None:
        self._known: list[Fact] = []
        self._by_key: dict[str, list[int]] = {}
        self._by_text: dict[str, int] = {}
        self._steps: dict[int, _Step | None] = {}
        """Of the facts for which that has been looked up."""
        self._followers: dict[int, list[int]] = {}

    def __len__(self) -> int:
        return len(self._known)

    def add(self, fact: Fact) -> None:
        """A fact that may be corrected from now on."""
        number = len(self._known)
        for key in clues(fact.text):
            self._by_key.setdefault(key, []).append(number)
        old = self._by_text.get(fact.earlier.rsplit(STEP, 1)[-1])
        if old is not None:
            self._followers.setdefault(old, []).append(number)
        self._by_text[_as_earlier(fact)] = number
        self._known.append(fact)

    def keep(self, size: int) -> None:
        """Forget all but the first so many facts, as if they had never been added."""
        del self._known[size:]
        self._by_key = {k: [n for n in all_ if n < size] for k, all_ in self._by_key.items()}
        self._followers = {k: [n for n in all_ if n < size] for k, all_ in self._followers.items()}
        self._steps = {n: step for n, step in self._steps.items() if n < size}
        self._by_text = {_as_earlier(fact): n for n, fact in enumerate(self._known)}

    def link(self, fact: Fact) -> Found:
        """The fact with the one it corrects, if there is one; it may be corrected itself next."""
        number = len(self._known)
        step = self._step(fact.text, number)
        found = Found(fact)
        if step is not None:
            newest = self._newest(fact.text, number, step)
            found = Found(self._with_earlier(fact, newest), self._known[newest])
        self.add(found.fact)
        self._note(number, step)
        return found

    def _note(self, number: int, step: _Step | None) -> None:
        self._steps[number] = step
        if step is not None:
            self._followers.setdefault(step.number, []).append(number)

    def _candidates(self, line: str, number: int) -> list[int]:
        """Numbers of the facts before that one that its line may correct."""
        found = set(range(max(0, number - RECENT_LINES), number))
        for key in clues(line):
            alike = self._by_key.get(key, [])
            end = bisect_left(alike, number)
            found.update(alike[max(0, end - MOST_ALIKE) : end])
        return sorted(found)

    def _step(self, line: str, number: int) -> _Step | None:
        numbers = self._candidates(line, number)
        change = _change(line, tuple(self._known[n].text for n in numbers))
        return _Step(numbers[change.index], change.old, change.new) if change else None

    def _newest(self, line: str, number: int, step: _Step) -> int:
        """What holds now in place of the value that the line corrects: the end of its chain."""
        chain = {step.number: step.old}
        left = {n for n in self._candidates(line, number) if n > step.number}
        left.update(self._followers.get(step.number, ()))
        while left:
            left.remove(later := min(left))
            if (new := self._next(line, later, chain)) is not None:
                chain[later] = new
                left.update(n for n in self._followers.get(later, ()) if n > later)
        return max(chain)

    def _next(self, line: str, later: int, chain: dict[int, str]) -> str | None:
        """The value that a fact gives in place of the one that was corrected so far, if it does."""
        text = self._known[later].text
        if not any(_change(text, (self._known[n].text,)) for n in chain):
            return None  # what follows takes long
        if later not in self._steps:
            self._note(later, self._step(text, later))
        step = self._steps[later]
        if step is None or step.number not in chain or step.old != chain[step.number]:
            return None
        # Without values it takes more to tell that both are of the same matter.
        told = bool(step.old) or _change(line, (text,)) is not None
        return step.new if told and same_owner(line, text) and not contrast(line, text) else None

    def _with_earlier(self, fact: Fact, number: int) -> Fact:
        """The fact with the line it corrects; one that says the same again, with that before it."""
        old = self._known[number]
        again = bool(old.earlier) and changed_values(fact.text, old.text) == ("", "")
        if again and values(fact.text) and changed_values(fact.text, old.earlier)[0]:
            return replace(fact, earlier=old.earlier)
        return replace(fact, earlier=_earlier(old))


def _earlier(old: Fact) -> str:
    """The line that was corrected; with the one before it, if it does not say its subject."""
    text = _as_earlier(old)
    room = MAX_EARLIER_CHARACTERS - len(STEP) - len(text)
    if old.earlier and room >= _LEAST_BEFORE and not shares_subject(old.text, old.earlier):
        return f"{shortened(old.earlier, room)}{STEP}{text}"
    return text


def _as_earlier(fact: Fact) -> str:
    return shortened(fact.text, MAX_EARLIER_CHARACTERS)
