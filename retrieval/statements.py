"""A sentence of a reply: what it says of its own, and what in it must be exactly right. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass

from retrieval.calendar_words import DAY_KEY, calendar_in, key_of, stated_days
from retrieval.number_words import NUMBER_TERMS, SINO_AMOUNT
from retrieval.unit_words import UNIT_MARK
from retrieval.values import Quantity, read_quantities
from retrieval.words import content_terms, is_glued

_LABEL = re.compile(r"\[\d+(?:\s*,\s*\d+)*\]")
_LIST_MARK = re.compile(r"^\s*(?:\d{1,3}[.)]|[-*•·]|#{1,6})\s+")
_NAME = re.compile(
    r"(?<=[\w,;:(“\"'] )[A-Z](?:[^\W가-힣]|[’'-])*|(?<=[“\"'(])[A-Z](?:[^\W가-힣]|[’'-])*"
)
_WORD = re.compile(r"[가-힣]+|(?<!\d)[^\W\d_가-힣][^\W_가-힣]*(?:['’-][^\W_가-힣]+)*")
_SCALE = re.compile(rf"(?<=\d) ?[십백천만억조]+ ?(?=원|명|개|달러|유로|엔|톤)|{SINO_AMOUNT}")
"""Of 120만원 and 120만 원 the number is looked for, and no word between it and its unit."""
_ENDINGS = re.compile(
    r"(?:입니다|이었습니다|였습니다|습니다|합니다|됩니다|이에요|예요|이다|이며|이고|이라고|라고|으로서|으로"
    r"|에서는|에서|에게|까지|부터|이라는|라는|에는|은|는|이|가|을|를|의|에|로|와|과|도|만|다|요)$"
)
_FRAME_TEXT = """according to the document documents passage passages text texts source sources
context answer answers question states stated says mentions mentioned given provided information
based following described sure certainly yes course hello thanks thank welcome glad help please
sorry note example also however therefore
문서 문서에 문서의 따르면 정답은 정답 답은 답변 질문 내용 자료 출처 발췌문 본문 의하면 나와
있습니다 있다 입니다 합니다 안녕하세요 감사합니다 네 알겠습니다 도움 물론 다음 다음과 같습니다
말하면 그리고 그러나 또한"""


@dataclass(frozen=True, slots=True)
class Statement:
    """A sentence of a reply: its own words, and what in it must be exactly right."""

    words: tuple[frozenset[str], ...]
    """The content terms of each word that neither frames the answer nor repeats the question."""
    numbers: frozenset[str]
    names: frozenset[str]
    days: frozenset[str]
    """Months and days of the week, by their keys."""
    whole: tuple[frozenset[str], ...]
    """The words with those that repeat the question."""
    quantities: tuple[Quantity, ...]

    @property
    def says_something(self) -> bool:
        return bool(self.words or self.numbers or self.names or self.days)


def read_statement(sentence: str, question: str, asked: set[str]) -> Statement:
    text = _LIST_MARK.sub("", _LABEL.sub("", sentence))
    known = _FRAME | asked | calendar_in(question)
    quantities = tuple(read_quantities(text))
    asked_numbers = {key for q in read_quantities(question) for key in q.readings}
    counted = _number_words(quantities, known)
    terms = [found for word in _WORD.findall(_SCALE.sub(" ", text)) if (found := word_terms(word))]
    # Numbers in words are looked for as numbers, whatever stands for them and their units.
    spoken = NUMBER_TERMS.union(*(word_terms(q.unit_word) for q in quantities if q.unit_word))
    terms = [_keyed(found) for found in terms if not found <= spoken]
    numbers = {q.key for q in quantities if not q.soft} - asked_numbers
    keys = names_in(text)
    days = {key for key in keys if DAY_KEY.fullmatch(key)}
    return Statement(
        words=(*(frozenset(found - known) for found in terms if not found <= known), *counted),
        numbers=frozenset(numbers),
        names=frozenset(keys - days - known),
        days=frozenset(days - calendar_in(question)),
        whole=tuple(frozenset(found) for found in terms if not found <= _FRAME),
        quantities=quantities,
    )


def names_in(text: str) -> set[str]:
    """The terms of the names of a text, and the keys of its months and days of the week."""
    named = {t for name in _NAME.findall(text) for t in content_terms(name)} - NUMBER_TERMS
    return {key_of(name) or name for name in named} | stated_days(text)


def _keyed(terms: set[str]) -> set[str]:
    """A month or a day of the week by its key, which stands for all its forms."""
    return {key_of(term) or term for term in terms}


def _number_words(quantities: Sequence[Quantity], known: Set[str]) -> Iterator[frozenset[str]]:
    """The words of numbers and units, as what stands for all their forms."""
    for quantity in quantities:
        if quantity.spelled and quantity.key not in known:
            yield frozenset({quantity.key})
        if quantity.unit_word and not word_terms(quantity.unit_word) <= known:
            yield frozenset({f"{UNIT_MARK}{min(quantity.unit)}"})


def word_terms(word: str) -> set[str]:
    """Content terms of one word, without the particle or ending of a Hangul word.

    A single syllable, such as a unit behind a number, says too little to be looked for.
    """
    return content_terms(_ENDINGS.sub("", word) if is_glued(word) and len(word) > 2 else word)


_FRAME = frozenset(term for word in _FRAME_TEXT.split() for term in word_terms(word))
