"""A summary out of the turns' own sentences, word for word. Calls no model but an embedder.

Sentences are chosen by how central and how specific they are and by what they add to those
chosen already, and then stand in the order in which they were said.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

import prompts
from chatbot.facts import FENCED, shortened
from chatbot.messages import Message, Turn
from chatbot.salience import is_prose, salience
from chatbot.words import word_set
from retrieval.sentences import sentences
from retrieval.types import CountTokens
from retrieval.words import content_terms

Embed = Callable[[list[str]], npt.NDArray[np.float32]]
"""Texts to normalised vectors, one row each."""

MAX_CONSIDERED = 400
"""Sentences compared with each other; of longer spans the most specific ones."""
_LEAST_COST = 14
"""Tokens that a sentence counts for at least, so that crumbs do not win by being short."""
_USER_BONUS = 0.75
_OLD_SHARE = 0.6
"""Most of the cap that an earlier summary may keep."""
_REPLY_DISCOUNT = 0.5
_LONGEST_SHARE = 0.4
"""A sentence longer than this share of the cap is shortened,"""
_ORDINARY_TOKENS = 80
"""unless it is below this: fewer whole sentences say more than many beginnings."""


_LEAST_WORDS = 3
"""Of the beginning of a sentence; "the book club …" says nothing of it."""
_LONG_WORDS = 16
_WORD = re.compile(r"[\w'’-]*[^\W_][\w'’-]*")


@dataclass(frozen=True, slots=True)
class _Sentence:
    text: str
    speaker: str
    order: int
    weight: float
    """What it is worth for what it holds, without regard to the others."""


def extractive_summary(
    turns: Sequence[Turn],
    *,
    cap_tokens: int,
    count_tokens: CountTokens,
    language: str = "en",
    previous: str = "",
    outdated: Sequence[str] = (),
    embed: Embed | None = None,
) -> str:
    """At most `cap_tokens` of `previous` and of sentences of the turns, in the order of speech.

    `previous` is an earlier summary, of any origin. It stays word for word while it leaves the
    new turns their share; when it does not, its most specific sentences stay. Lines of the turns
    begin with the speaker in brackets. Sentences in `outdated` are left out, since others have
    taken their place. "" when there is nothing, or not even a word fits.
    """
    gone = {_key(text) for text in outdated}
    head = _without(previous.strip(), gone)
    old_cap = int(_OLD_SHARE * cap_tokens)
    if head and count_tokens(head) > old_cap:
        head = _selected(_of_previous(head), "", cap_tokens=old_cap, count_tokens=count_tokens)
    known = gone | {_key(sentence.text) for sentence in _of_previous(head)}
    pool = (s for s in _of_turns(turns, language) if _key(s.text) not in known)
    return _selected(pool, head, cap_tokens=cap_tokens, count_tokens=count_tokens, embed=embed)


def _without(previous: str, gone: set[str]) -> str:
    """An earlier summary without the sentences that are no longer true."""
    kept = list(_of_previous(previous)) if gone else []
    if all(_key(sentence.text) not in gone for sentence in kept):
        return previous
    return _written([sentence for sentence in kept if _key(sentence.text) not in gone])


def _selected(
    sentences_in: Iterable[_Sentence],
    head: str,
    *,
    cap_tokens: int,
    count_tokens: CountTokens,
    embed: Embed | None = None,
) -> str:
    """`head`, followed by the best of the sentences that fit the cap."""
    longest = max(_LONGEST_SHARE * cap_tokens, min(_ORDINARY_TOKENS, 0.9 * cap_tokens))
    pool = _shortened(_distinct(sentences_in), int(longest), count_tokens)
    if len(pool) > MAX_CONSIDERED:
        pool = sorted(pool, key=lambda s: -s.weight)[:MAX_CONSIDERED]
        pool.sort(key=lambda s: s.order)
    chosen: list[_Sentence] = []
    text = head
    for sentence in _ranked(pool, embed, count_tokens):
        attempt = sorted([*chosen, sentence], key=lambda s: s.order)
        written = "\n".join(part for part in (head, _written(attempt)) if part)
        if count_tokens(written) <= cap_tokens:
            chosen, text = attempt, written
    return text


def _of_previous(previous: str) -> Iterator[_Sentence]:
    """The sentences of an earlier summary, with their speakers if it was an extractive one."""
    order = 0
    for line in previous.splitlines():
        mark = re.match(r"\(([^()\n]{1,60})\) (?=\S)", line)
        for text in sentences(line[mark.end() :] if mark else line):
            yield _Sentence(text, mark.group(1) if mark else "", order, salience(text).weight)
            order += 1


def _of_turns(turns: Sequence[Turn], language: str) -> Iterator[_Sentence]:
    order = 0
    for turn in turns:
        for message in (*turn.user, *turn.assistant):
            speaker = _speaker(message, language)
            for text in sentences(FENCED.sub("\n\n", message.content)):
                line = " ".join(text.split())
                if not is_prose(line) or not content_terms(line):
                    continue
                weight = salience(line).weight
                if message.role == "user":
                    weight += _USER_BONUS
                else:
                    weight *= _REPLY_DISCOUNT
                yield _Sentence(line, speaker, order, weight)
                order += 1


def _speaker(message: Message, language: str) -> str:
    label = "speaker_assistant" if message.role == "assistant" else "speaker_user"
    name = re.sub(r"[()\s]+", " ", message.name or "").strip()[:60]
    return name or prompts.load(label, language).lower()


def _key(text: str) -> str:
    return text.casefold().strip(" .!?")


def _distinct(pool: Iterable[_Sentence]) -> list[_Sentence]:
    """Each sentence once, where it was said first."""
    seen: dict[str, _Sentence] = {}
    for sentence in pool:
        seen.setdefault(_key(sentence.text), sentence)
    return list(seen.values())


def _shortened(
    pool: Sequence[_Sentence], limit_tokens: int, count_tokens: CountTokens
) -> list[_Sentence]:
    """Sentences that would fill the summary alone, cut at a clause and marked so."""
    result: list[_Sentence] = []
    for sentence in pool:
        text = sentence.text
        tokens = count_tokens(text)
        while tokens > limit_tokens and len(text) > 12:
            share = max(0.5, min(0.9, limit_tokens / tokens))
            text = shortened(text.removesuffix(" …"), int(len(text) * share))
            tokens = count_tokens(text)
        if text != sentence.text and not _says_something(text):
            continue
        result.append(_Sentence(text, sentence.speaker, sentence.order, sentence.weight))
    return result


def _says_something(text: str) -> bool:
    """Whether the beginning of a sentence has more than the words that any could begin with."""
    words = [word for word in _WORD.findall(text) if word.casefold() not in word_set("beginnings")]
    # Some scripts have no spaces between words.
    return len(words) >= _LEAST_WORDS or sum(map(len, words)) >= _LONG_WORDS


def _ranked(
    pool: Sequence[_Sentence], embed: Embed | None, count_tokens: CountTokens
) -> Iterator[_Sentence]:
    """Best first: own weight, nearness to the centre, and what is new beside those before it."""
    if not pool:
        return
    likeness = _likeness(pool, embed)
    central = likeness.mean(axis=1)
    central = central / max(float(central.max()), 1e-9)
    weights = np.array([sentence.weight for sentence in pool])
    # Long sentences must be worth their room, but not so much that only crumbs are chosen.
    costs = np.array([max(_LEAST_COST, count_tokens(sentence.text)) for sentence in pool]) ** 0.5
    values = (weights + 2.0 * central + 0.1) / costs
    redundancy = np.zeros(len(pool))
    left = np.ones(len(pool), dtype=bool)
    for _ in pool:
        scores = np.where(left, values * (1.0 - redundancy), -np.inf)
        best = int(scores.argmax())
        left[best] = False
        redundancy = np.minimum(0.95, np.maximum(redundancy, likeness[best]))
        yield pool[best]


def _likeness(pool: Sequence[_Sentence], embed: Embed | None) -> npt.NDArray[np.float64]:
    """Cosine of every pair, in [0, 1]: of meanings if there is an embedder, and of words."""
    words = _word_vectors([sentence.text for sentence in pool])
    likeness = words @ words.T
    if embed is not None:
        vectors = embed([sentence.text for sentence in pool]).astype(np.float64)
        likeness = 0.5 * likeness + 0.5 * np.clip(vectors @ vectors.T, 0.0, 1.0)
    return likeness


def _word_vectors(texts: Sequence[str]) -> npt.NDArray[np.float64]:
    """Normalised vectors of words, and of Hangul pairs, weighted by rarity."""
    terms = [content_terms(text) for text in texts]
    frequency = Counter(term for found in terms for term in found)
    columns = {term: n for n, term in enumerate(frequency)}
    vectors = np.zeros((len(texts), max(1, len(columns))))
    for row, found in enumerate(terms):
        for term in found:
            vectors[row, columns[term]] = 1.0 + math.log(len(texts) / frequency[term])
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    result: npt.NDArray[np.float64] = vectors / np.maximum(norms, 1e-9)
    return result


def _written(chosen: Sequence[_Sentence]) -> str:
    """One line for each run of sentences of one speaker."""
    lines: list[str] = []
    speaker: str | None = None
    for sentence in chosen:
        if lines and sentence.speaker == speaker:
            lines[-1] += f" {sentence.text}"
        else:
            lines.append(
                f"({sentence.speaker}) {sentence.text}" if sentence.speaker else sentence.text
            )
            speaker = sentence.speaker
    return "\n".join(lines)
