"""A sentence of a reply: what it says of its own, and what in it must be exactly right. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

from retrieval.words import content_terms, is_glued

_LABEL = re.compile(r"\[\d+(?:\s*,\s*\d+)*\]")
_LIST_MARK = re.compile(r"^\s*(?:\d{1,3}[.)]|[-*•·]|#{1,6})\s+")
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_NAME = re.compile(
    r"(?<=[\w,;:(“\"'] )[A-Z](?:[^\W가-힣]|[’'-])*|(?<=[“\"'(])[A-Z](?:[^\W가-힣]|[’'-])*"
)
_WORD = re.compile(r"[가-힣]+|(?<!\d)[^\W\d_가-힣][^\W_가-힣]*(?:['’-][^\W_가-힣]+)*")
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

    @property
    def says_something(self) -> bool:
        return bool(self.words or self.numbers or self.names)


def read_statement(sentence: str, question: str, asked: set[str]) -> Statement:
    text = _LIST_MARK.sub("", _LABEL.sub("", sentence))
    known = _FRAME | asked
    words = []
    for word in _WORD.findall(text):
        terms = word_terms(word)
        if terms and not terms <= known:
            words.append(frozenset(terms - known))
    numbers = frozenset(numbers_in(text) - numbers_in(question))
    names = frozenset(t for name in _NAME.findall(text) for t in content_terms(name)) - known
    return Statement(tuple(words), numbers, names)


def word_terms(word: str) -> set[str]:
    """Content terms of one word, without the particle or ending of a Hangul word.

    A single syllable, such as a unit behind a number, says too little to be looked for.
    """
    return content_terms(_ENDINGS.sub("", word) if is_glued(word) and len(word) > 2 else word)


def numbers_in(text: str) -> set[str]:
    return {number.replace(",", "").rstrip(".") for number in _NUMBER.findall(text)}


_FRAME = frozenset(term for word in _FRAME_TEXT.split() for term in word_terms(word))
