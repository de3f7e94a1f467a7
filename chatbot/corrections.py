"""Which earlier line a new one corrects, and from what value to what. Pure.

Knows lines of text only: no turn, no summary and no list of facts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from chatbot.contrasts import contrast, of_another_person, of_two_subjects
from chatbot.frames import is_since, without_since
from chatbot.line_values import (
    changed_values,
    gives_up_old,
    keys,
    kinds,
    mentions_old,
    values,
)
from chatbot.negations import denies_something_else, says_opposite
from chatbot.restated import restated
from chatbot.shared_words import SHORT_WORDS, shares, shares_of_clause
from chatbot.subjects import (
    among,
    clause_with,
    has_owner,
    of_two_things,
    same_owner,
    shares_subject,
    subject,
    value_clause,
)
from chatbot.unreal import place_of, unreal
from chatbot.words import patterns

RECENT_LINES = 6
""""No, I meant Busan" has no subject of its own: it corrects one of so many lines before it."""
_LEAST_SHARE, _LEAST_SHARE_OF_ALL = 0.34, 0.3
"""Of the words of the shorter and of the longer line, so many are common."""
_WEAK_SHARE, _WEAK_SHARE_OF_ALL = 0.5, 0.4
"""The same of lines that only sound like news: of the shorter line, and of the longer one."""
_LONGEST = 600
"""Characters of a line; facts are far shorter."""
_MOST_UNREAL = 3
"""Values that a line may suppose or deny beside the one that holds."""
_MOST_OWN_WORDS = 1
"""Beside its value, a line that shares no word with the one before it may have so many."""
_CUE = patterns("correction")
_NEWS = patterns("news")
_ENDS_IT = patterns("ends_it")
_FOUND_OUT = patterns("found_out")
_INSTEAD = patterns("instead")
_STATES = patterns("states")


Fit = Callable[[str, str, int], float]
"""(new line, earlier line, how many lines it is back) -> how well they fit; 0 for not at all."""


@dataclass(frozen=True, slots=True)
class Change:
    """What a line corrects. `index` is the place of the earlier line in the sequence given.

    `old` and `new` are the values, "" where the lines have none that can be told.
    `has_subject`: the new line itself says what it is about.
    """

    index: int
    old: str = ""
    new: str = ""
    has_subject: bool = True


def sounds_like_correction(line: str) -> bool:
    """Whether a line has words by which people take something back."""
    return bool(_CUE.search(line))


def find_corrected(line: str, earlier: Sequence[str]) -> Change | None:
    """The line of `earlier`, oldest first, that `line` takes the place of; the newest of equals.

    A line that does not sound like a correction only replaces one that says nearly the same with
    one other value; less is asked of it if it sounds like news.
    """
    if line.rstrip().endswith(("?", "？")) or len(line) > _LONGEST:
        return None
    change = _find(line, earlier)
    for _ in range(_MOST_UNREAL):
        if change is None or not _unreal(line, earlier[change.index], change):
            return change
        if (at := place_of(line, change.new)) < 0:
            return None
        # Of what is left one may hold: "it used to be 800, and is 900 now".
        line = f"{line[:at]}{' ' * len(change.new)}{line[at + len(change.new) :]}"
        change = _find(line, earlier)
        change = change if change and change.new else None
    return None


def _unreal(line: str, old: str, change: Change) -> bool:
    """Whether the line only supposes, denies or tells as past what the old line told otherwise."""
    kind = unreal(line, place_of(line, change.new), change.new)
    return bool(kind) and kind != unreal(old, place_of(old, change.old), change.old)


def _find(line: str, earlier: Sequence[str]) -> Change | None:
    for index in range(len(earlier) - 1, -1, -1):
        if says_opposite(line, earlier[index]) and not contrast(line, earlier[index]):
            return Change(index)
    return _by_values(line, earlier) or _by_form(line, earlier)


def _by_values(line: str, earlier: Sequence[str]) -> Change | None:
    """By figures, dates and names, of which one is another."""
    plain = without_since(line)
    # "Since Monday" is no value; without one in it the words tell more.
    plain = line if values(plain) == values(line) else plain
    if sounds_like_correction(line):
        return _best(plain, earlier, _fit)
    change = _restated(plain, earlier)
    news = _NEWS.search(line) or is_since(line)
    return change or (_best(plain, earlier, _fit_of_news) if news else None)


def _by_form(line: str, earlier: Sequence[str]) -> Change | None:
    """By what the line says of what, whatever words its value has."""
    cue = sounds_like_correction(line) or bool(_FOUND_OUT.search(line))
    for index in range(len(earlier) - 1, -1, -1):
        found = restated(line, earlier[index], taken_back=cue)
        if found and not contrast(line, earlier[index]):
            return Change(index, *found)
    return None


def _best(line: str, earlier: Sequence[str], fit: Fit) -> Change | None:
    best: tuple[float, int] | None = None
    for index, old in enumerate(earlier):
        score = fit(line, old, len(earlier) - index)
        if score > 0 and (best is None or (score, index) >= best):
            best = (score, index)
    return None if best is None else _change(line, earlier[best[1]], best[1])


def _fit(line: str, old: str, behind: int) -> float:
    """How well `line` reads as a correction of `old`, `behind` lines before it; 0: not at all."""
    before, after = changed_values(line, old)
    if not same_owner(line, old) or (before and of_another_person(line, old, after)):
        return 0.0
    shared, share, of_all = shares_of_clause(line, after, old, before)
    if before and gives_up_old(line, old):
        return 4 + share
    if before and share >= _LEAST_SHARE and mentions_old(line, old):
        return 3 + share
    if _ENDS_IT.search(line) and not before:
        return 1 + share if share >= _LEAST_SHARE and not _apart(line, old) else 0.0
    if before and share >= _LEAST_SHARE and _about(line, after, old):
        if _apart(clause_with(line, after), clause_with(old, before)):
            return 0.0
        return 2 + share + 0.1 * shared
    if before and not shared and not has_owner(line):
        return _fit_without_subject(line, old, after, behind=behind)
    # It may name the value that is given up, as in "as a Word file, not a PDF".
    no_value = not values(line) and not values(old)
    given_up = bool(values(line)) and keys(line) <= keys(old)
    wordy = _INSTEAD.search(line) and (no_value or given_up)
    differs = subject(line) != subject(old) and not denies_something_else(line, old)
    enough = share >= _LEAST_SHARE and of_all >= _LEAST_SHARE_OF_ALL
    return 1 + share if wordy and enough and differs else 0.0


def _about(line: str, after: str, old: str) -> bool:
    """Whether the clause with the new value is about the old line. In short lines all of it is."""
    clause = clause_with(line, after)
    if len(line.split()) <= SHORT_WORDS or clause == line:
        return True
    return shares(clause, old)[1] >= _LEAST_SHARE


def _fit_without_subject(line: str, old: str, after: str, *, behind: int) -> float:
    """A weekday rather stands for a weekday than for a date."""
    clause = value_clause(line, after)
    own = len(subject(clause))
    fits = 0.1 * bool(kinds(line) & kinds(old))
    if not own:
        return 0.5 + fits if behind <= RECENT_LINES and not contrast(clause, old) else 0.0
    near = behind == 1 and own <= _MOST_OWN_WORDS and not of_two_subjects(clause, old)
    return 0.3 + fits if near else 0.0


def _fit_of_news(line: str, old: str, behind: int) -> float:
    """The same for a line with "now" or "these days", which need not take anything back."""
    del behind
    before, after = changed_values(line, old)
    if not before or not same_owner(line, old) or of_another_person(line, old, after):
        return 0.0
    beside = values(value_clause(line, after))
    rivals = [v for v in beside if v.text != after and v.kind in _kinds_of(line, after)]
    if rivals or len(line.split()) > SHORT_WORDS:
        return 0.0
    shared, share, of_all = shares_of_clause(line, after, old, before)
    if share < _WEAK_SHARE or of_all < _WEAK_SHARE_OF_ALL:
        return 0.0
    if _apart(clause_with(line, after), clause_with(old, before)):
        return 0.0
    return 2 + share + 0.1 * shared


def _apart(line: str, old: str) -> bool:
    return of_two_things(line, old) or contrast(line, old)


def _kinds_of(line: str, text: str) -> set[str]:
    return {value.kind for value in values(line) if value.text == text}


def _restated(line: str, earlier: Sequence[str]) -> Change | None:
    mine = subject(line)
    if len(mine) < 1 or not values(line) or not _STATES.search(line):
        return None
    for index in range(len(earlier) - 1, -1, -1):
        old = earlier[index]
        theirs = subject(old)
        shared = sum(among(term, theirs) for term in mine)
        # Two words in common say more than one: then a verb may differ.
        least = 0.6 if shared > 1 else 0.8
        if shared < least * max(len(mine), len(theirs), 1) or of_two_things(line, old):
            continue
        if of_two_subjects(line, old) or not same_owner(line, old):
            continue
        if len(keys(line) - keys(old)) == 1:  # more are another thing of a series
            change = _change(line, old, index)
            if change.old and not of_another_person(line, old, change.new):
                return change
    return None


def _change(line: str, old: str, index: int) -> Change:
    before, after = changed_values(line, old)
    return Change(index, before, after, shares_subject(line, old))
