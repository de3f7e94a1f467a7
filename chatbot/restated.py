"""Whether a line gives the same attribute of the same thing another value. Pure.

Knows lines of text only. Values need not be figures or names: "고양이 이름은 초코예요" and later
"고양이 이름은 보리예요". What may stand beside the earlier line, as a second hobby, is left.
"""

from __future__ import annotations

import re
from functools import lru_cache

from chatbot.frames import Frame, clauses, frames, is_since, without_since
from chatbot.subjects import among, same_owner
from chatbot.words import patterns
from retrieval.words import content_terms

_MOST_WORDS = 18
"""Longer lines tell a story, of which one part may well be as that of another story."""
_BESIDE = patterns("beside")
_PARTICLE = re.compile(r"(?:께서는|께서|에서는|에서|에는|이는|이가|으로|[은는이가을를에로도만])$")
_ADDS = re.compile(
    r"(?:좋아|싫어|먹|드[시세]|마[시셔]|배우|배워|키[우워]|사요|샀|있|계[시세]|갖|가지|읽|보[고아]|봐|봤|필요|만나|알)"
)
"""Verbs of which a line may have several objects."""
_HELPER = re.compile(
    r"(?:거예요|거야|겁니다|있어요|있습니다|줘요|주세요|줍니다|했어요|했습니다|합니다|해요)$"
)
_MOVES, _STAYS = re.compile(r"이사|옮기|옮겼"), re.compile(r"살[아고]|사[시세셔]|삽니")
_LIGHT = frozenset(
    ("a", "an", "the", "my", "our", "his", "her", "their", "instead", "then", "please", "either")
)
_HAS = frozenset(("like", "lov", "hat", "eat", "drink", "want", "need", "have", "know", "see"))
"""Of these there may be several at a time."""
_Part = tuple[str, str]
_SPEAKER = frozenset(("저는", "제가", "나는", "내가", "우리는", "저희는", "저도", "난", "전"))


def restated(line: str, old: str, *, taken_back: bool = False) -> tuple[str, str] | None:
    """The part of the old line and that of the new one that takes its place; None if none does.

    `taken_back`: the new line sounds like a correction.
    """
    if _BESIDE.search(line) or not same_owner(line, old):
        return None
    if max(len(line.split()), len(old.split())) > _MOST_WORDS:
        return None
    since = is_since(line)
    for mine in frames(line):
        for theirs in frames(old):
            if _is_new_value(mine, theirs, since=since):
                return theirs.text, mine.text
    if taken_back and (found := _other_end(line, old)):
        return found
    return _other_part(line, old) if since or taken_back else None


def _is_new_value(mine: Frame, theirs: Frame, *, since: bool) -> bool:
    if not _same_terms(mine.about, theirs.about) or mine.verb != theirs.verb:
        return False
    if all(among(term, theirs.value) for term in mine.value):
        return False
    if mine.called and theirs.called:
        return True
    if mine.verb or (_is_name(mine.text) and _is_name(theirs.text)):
        return since
    # "My sister is ill now" says nothing against "my sister is a nurse".
    return (mine.settled or theirs.settled) and (since or mine.changes or mine.settled)


def _other_end(line: str, old: str) -> tuple[str, str] | None:
    """English clauses of the same words but for one or two at the end: "it is X that we like"."""
    said = [_plain(clause) for clause in clauses(line)]
    for words in (_plain(clause) for clause in clauses(old)):
        for size in (1, 2):
            front, gone = words[:-size], words[-size:]
            told = len(content_terms(" ".join(front)) - _HAS)
            if len(front) < 2 or told < (2 if front[0].startswith("i") else 1):
                continue
            for mine in said:
                new = _behind(mine, front) or _named_first(mine, front)
                if new and len(new) <= size + 1 and new != gone:
                    return " ".join(gone), " ".join(new)
    return None


def _plain(clause: str) -> list[str]:
    words = re.findall(r"[a-z0-9][a-z0-9'’-]*", clause.lower())
    return [word for word in words if word not in _LIGHT]


def _behind(words: list[str], front: list[str]) -> list[str]:
    size = len(front)
    at = next((n for n in range(len(words)) if words[n : n + size] == front), None)
    return [] if at is None else words[at + size :]


def _named_first(words: list[str], front: list[str]) -> list[str]:
    """What stands between "it is" and "that" before the same words."""
    if words[:2] == ["it", "is"] and words[-len(front) :] == front and "that" in words:
        return words[2 : words.index("that")]
    return []


def _is_name(text: str) -> bool:
    return all(word[0].isupper() for word in text.split())


def _same_terms(mine: frozenset[str], theirs: frozenset[str]) -> bool:
    return all(among(t, theirs) for t in mine) and all(among(t, mine) for t in theirs)


def _other_part(line: str, old: str) -> tuple[str, str] | None:
    """Korean lines of the same verb that differ in one part with the same particle."""
    mine, theirs = _parts(without_since(line)), _parts(old)
    if not mine or not theirs:
        return None
    if mine[-1][1] != theirs[-1][1]:
        return _moved(mine, theirs)
    new = [part for part in mine[:-1] if not _held(part, theirs)]
    gone = [part for part in theirs[:-1] if not _held(part, mine)]
    if len(new) != 1 or len(gone) != 1 or new[0][1] != gone[0][1] or new[0][1] in _TOPICS:
        return None
    shared = [part for part in mine[:-1] if part not in new]
    if _ADDS.match(mine[-1][0]) and new[0][1] in ("을", "를", ""):
        # What is eaten at breakfast takes the place of what was; what is liked does not.
        shared = [part for part in shared if part[1] == "에"]
    return (gone[0][0], new[0][0]) if shared else None


def _moved(mine: tuple[_Part, ...], theirs: tuple[_Part, ...]) -> tuple[str, str] | None:
    """Who lived or worked somewhere and has moved elsewhere."""
    if not _MOVES.match(mine[-1][0]) or not _STAYS.match(theirs[-1][0]):
        return None
    new = next((text for text, role in mine if role == "로"), "")
    gone = next((text for text, role in theirs if role == "에"), "")
    said = {word for text, role in theirs if role == "은" for word in text.split()}
    who = [word for text, role in mine if role == "은" for word in text.split() if word in said]
    return (gone, new) if new and gone and who else None


_TOPICS = ("은", "")
_ROLE = {"는": "은", "이": "은", "가": "은", "께서": "은", "께서는": "은", "이는": "은",
         "이가": "은", "을": "를", "에서": "에", "에는": "에", "에서는": "에",
         "으로": "로"}  # fmt: skip


@lru_cache(maxsize=16_384)
def _parts(line: str) -> tuple[_Part, ...]:
    """Words up to each particle, with the particle; the last is the verb, by its first sound."""
    words = re.findall(r"[^\s,.!?…\"“”()]+", line)
    if len(words) > 1 and _HELPER.fullmatch(words[-1]):
        words.pop()
    if len(words) < 2 or not "가" <= words[-1][0] <= "힣":
        return ()
    found: list[tuple[str, str]] = []
    held: list[str] = []
    for word in words[:-1]:
        if word in _SPEAKER:
            continue
        end = _PARTICLE.search(word) if len(word) > 1 else None
        held.append(word[: end.start()] if end else word)
        if end:
            found.append((" ".join(held), _ROLE.get(end.group(), end.group())))
            held = []
    if held:
        found.append((" ".join(held), ""))
    return (*found, (words[-1], _sound(words[-1])))


def _sound(verb: str) -> str:
    """The first consonant and vowel of a verb, which its endings leave: 닫아요, 닫습니다."""
    code = ord(verb[0]) - ord("가")
    vowel = code // 28 % 21
    # ㅕ is ㅣ with an ending, ㅘ ㅗ, ㅝ ㅜ, ㅐ in 해 ㅏ.
    return f"{code // 588} { {6: 20, 9: 8, 14: 13, 1: 0}.get(vowel, vowel) }"


def _held(part: _Part, parts: tuple[_Part, ...]) -> bool:
    words = frozenset(part[0].split())
    return any(_same_terms(words, frozenset(text.split())) for text, _ in parts[:-1])
