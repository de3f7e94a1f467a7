"""Accepts or refuses a summary that a model wrote, with reasons. Pure; calls no model."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from chatbot.figures import dates, numbers
from chatbot.fold_plan import transcript
from chatbot.gate_form import FORM_CHECKS, without_quotes
from chatbot.gate_joined import joined_wrongly
from chatbot.language import Language, detect, script_shares
from chatbot.line_values import changed_values, values
from chatbot.messages import Finish, RollingSummary, Turn
from chatbot.specifics import WEEKDAY, Specifics, names_in
from retrieval.types import CountTokens
from retrieval.words import content_terms

_PREAMBLE = re.compile(
    r"\A\W*(?:(?:here(?: is|['’]s) )?(?:the|a|an|my)?\s*(?:\w+ ){0,3}summary"
    r"(?: (?:of|in)\b[^:\n]{0,80})?|요약|대화 요약"
    r"|(?:다음은|아래는) [^:\n]{0,60}요약(?:입니다|이다|한 것입니다)?)\W{0,3}[:：]\W*(?=\S)"
    r"|\A(?:다음은|아래는) [^.\n]{0,60}요약(?:입니다|한 것입니다)\.\s+",
    re.IGNORECASE,
)
_THOUGHT = re.compile(r"\A\s*<think>.*?</think>", re.DOTALL)
_GROUNDED = {"en": 0.4, "ko": 0.3, "other": 0.2}
"""Least share of a summary's terms that its source holds: paraphrase is free, topics are not."""
_REPORTS = re.compile(
    r"\b(?:the|a) (?:user|assistant)\b|사용자[는가의]|도우미[는가]", re.IGNORECASE
)
"""Speaks of the chat from outside, as no answer in it does."""
_COPIED = 0.7
_SHINGLE_WORDS = 5
_MAX_CHARACTERS_A_TOKEN = 20
"""Bounds the time of the checks; ordinary text has 2 to 6."""
_MANY_CARRIED = 20
_LOST_SHARE = 0.1
_OWN_TERMS = content_terms(
    "user users assistant conversation chat summary discussed discuss mentioned mention explained"
    " asks asked ask answered suggested suggests recommended wants wanted wishes plans planned"
    " decided agreed prefers prefer stated said told talked learned noted provided described offers"
    " offered advised shared requested confirmed corrected changed options option details 사용자"
    " 사용자는 도우미 도우미는 대화 요약 요청 설명 질문 논의 언급 추천 제안 안내 결정 원한다 원하며"
    " 물었다 말했다 했으며 했다 하였다 한다 있다 있으며 이며 계획 선호 정했다 알려 주었다"
)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A summary as a model gave it. `trimmed`: its end was taken off at a sentence end."""

    text: str
    finish: Finish
    tokens: int
    trimmed: bool = False


@dataclass(frozen=True, slots=True)
class Source:
    """What a summary was made from. `tokens` counts `text` and the previous summary."""

    text: str
    tokens: int
    language: Language
    replies: str = ""
    earlier: str = ""
    """Transcript of all turns but the last."""
    last: str = ""
    previous: str = ""
    facts: tuple[str, ...] = ()
    """Lines that the fact list keeps, so that the summary may leave them out."""
    changes: tuple[tuple[str, str], ...] = ()
    """Lines of the user, each with the one that took its place."""

    @property
    def is_translated(self) -> bool:
        """The summary is wanted in another language than the turns: words cannot be compared."""
        return _detected(self.text, self.language) != self.language

    @property
    def all_text(self) -> str:
        return "\n".join((self.text, self.previous, *self.facts))


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a candidate may become the summary. `reasons` are short, for the record."""

    accepted: bool
    reasons: tuple[str, ...] = ()


def source_of(
    turns: Sequence[Turn],
    previous: RollingSummary | None,
    *,
    language: Language,
    count_tokens: CountTokens,
    facts: Sequence[str] = (),
    changes: Sequence[tuple[str, str]] = (),
) -> Source:
    """What the gate compares a summary of `turns`, merged with `previous`, against."""
    text = transcript(turns, language)
    before = previous.text if previous else ""
    return Source(
        text=text,
        tokens=count_tokens(text) + (count_tokens(before) if before else 0),
        language=language,
        replies="\n".join(turn.reply for turn in turns),
        earlier=transcript(turns[:-1], language),
        last=transcript(turns[-1:], language),
        previous=before,
        facts=tuple(facts),
        changes=tuple(changes),
    )


def tidy(text: str) -> str:
    """The summary without the model's thoughts before it, a heading or surrounding white space."""
    text = re.sub(r"\s*\n\s*\n\s*", "\n\n", _THOUGHT.sub("", text, count=1).strip())
    return _PREAMBLE.sub("", text, count=1).strip().strip("*").strip()


@lru_cache(maxsize=8)
def _detected(text: str, default: Language) -> Language:
    return detect(text, default)


def judge(candidate: Candidate, source: Source, *, cap_tokens: int) -> Verdict:
    """Accept a summary, or say everything that is wrong with it."""
    reasons = list(_of_size(candidate, source, cap_tokens))
    if len(candidate.text) > _MAX_CHARACTERS_A_TOKEN * cap_tokens:
        return Verdict(False, (*reasons, "longer than any text of so few tokens"))
    reasons += [reason for check in FORM_CHECKS if (reason := check(candidate.text))]
    if "empty" not in reasons:
        reasons += _of_language(candidate.text, source)
        reasons += _of_content(candidate.text, source)
        reasons += [f"invented: {word}" for word in invented(candidate.text, source)]
        reasons += [f"lost: {word}" for word in lost(candidate.text, source)]
        reasons += joined_wrongly(candidate.text, source.all_text, source.replies)
        reasons += [f"no longer so: {word}" for word in outdated(candidate.text, source)]
    if not reasons and candidate.trimmed:
        return Verdict(True, ("trimmed at a sentence end",))
    return Verdict(not reasons, tuple(dict.fromkeys(reasons)))


def invented(text: str, source: Source) -> list[str]:
    """Numbers, identifiers and names of `text` that the source does not hold."""
    known = Specifics(source.all_text)
    # 18:00 is 6 pm.
    found = [n.text for n in numbers(text) if not n.forms & known.numbers and n.text != "00"]
    found += [n.text for n in numbers(text) if n.forms & known.numbers and known.has_other(n)]
    found += [day for date, day in dates(text).items() if not known.has_date(date)]
    if not source.is_translated:
        found += [word for word in names_in(text, source.language) if not known.has(word)]
        found += [f"{day}요일" for day in WEEKDAY.findall(text) if not known.has_weekday(day)]
    return list(dict.fromkeys(found))


def lost(text: str, source: Source) -> list[str]:
    """Numbers and names that the previous summary carried and that neither `text` nor a fact has.

    When it carried very many, a tenth of them may go: they stay findable by recall, and a cap
    that never gives way would refuse every summary.
    """
    if not source.previous:
        return []
    known = Specifics("\n".join((text, *source.facts)))
    carried = [(n.text, bool(n.forms & known.numbers)) for n in numbers(source.previous)]
    carried += [(w, known.has(w)) for w in names_in(source.previous, source.language)]
    missing = list(dict.fromkeys(word for word, kept in carried if not kept))
    allowed = int(len(carried) * _LOST_SHARE) if len(carried) > _MANY_CARRIED else 0
    return missing if len(missing) > allowed else []


def outdated(text: str, source: Source) -> list[str]:
    """Values that the user has corrected and that `text` states without the new ones."""
    stated = {value.key for value in values(text)}
    found: list[str] = []
    for before, after in source.changes:
        old, new = changed_values(after, before)
        gone = {v.key: v.text for v in values(before) if v.text == old}
        now = {v.key for v in values(after) if v.text == new}
        if stated & gone.keys() and not stated & now:
            found.append(old)
    return found


def _of_size(candidate: Candidate, source: Source, cap_tokens: int) -> Iterator[str]:
    if candidate.finish != "stop" and not (candidate.finish == "length" and candidate.trimmed):
        yield f"did not end by itself: {candidate.finish}"
    if candidate.tokens > cap_tokens:
        yield f"over its cap: {candidate.tokens} of {cap_tokens} tokens"
    if candidate.tokens >= source.tokens:
        yield f"not shorter than its source: {candidate.tokens} of {source.tokens} tokens"


def _of_language(text: str, source: Source) -> Iterator[str]:
    language = detect(without_quotes(text), source.language)
    if language != source.language:
        yield f"language: {language} instead of {source.language}"
    elif (
        not source.is_translated
        and script_shares(text).other > script_shares(source.all_text).other + 0.05
    ):
        yield "language: a script that the conversation does not use"


def _of_content(text: str, source: Source) -> Iterator[str]:
    """Whether the summary is about the whole of its source, in words of its own."""
    if source.is_translated:
        return
    terms = content_terms(text) - _OWN_TERMS
    known = content_terms(source.all_text)
    if terms and len(terms & known) < _GROUNDED[source.language] * len(terms):
        yield "about something else than its source"
    last, earlier = content_terms(source.last), content_terms(source.earlier)
    rest = (earlier | content_terms(source.previous)) - last - _OWN_TERMS
    only_last = terms & (last - earlier)
    aside = not terms & rest and len(only_last) >= 3
    mostly = len(only_last) >= 4 and len(terms & rest) <= 0.15 * len(only_last)
    if len(rest) >= 8 and (aside or mostly) and not _REPORTS.search(text):
        yield "only about the last turn"
    if _copied(text, source.replies) >= _COPIED:
        yield "repeats a reply"


def _copied(text: str, replies: str) -> float:
    """Share of the runs of five words of `text` that stand in the replies just so."""
    mine, theirs = _shingles(text), _shingles(replies)
    return len(mine & theirs) / len(mine) if mine else 0.0


def _shingles(text: str) -> set[tuple[str, ...]]:
    words = re.findall(r"\w+", text.lower())
    n = _SHINGLE_WORDS
    return {tuple(words[i : i + n]) for i in range(len(words) - n + 1)}
