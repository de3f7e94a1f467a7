"""Chooses how prompts reach a server and who counts them: the most exact way that it can take.

Nothing is believed that the server's own count of a sample prompt contradicts.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from chatbot.engine.base import ChatFormat, ChatTokenizer
from chatbot.engine.carriers import CountText, carry_control
from chatbot.engine.chat_template import TemplateUnusableError
from chatbot.engine.defuse import WORD_JOINER, Defuse, defuse_any, defuser
from chatbot.engine.remote_believed import may_have
from chatbot.engine.remote_client import RemoteClient
from chatbot.engine.remote_probe import (
    ENGLISH,
    KOREAN,
    SAMPLE_QUESTION,
    SAMPLE_TURNS,
    Prober,
    split_chars,
)
from chatbot.engine.remote_requests import Way
from chatbot.engine.remote_server import ServerFacts
from chatbot.engine.remote_tokenizer import (
    Overheads,
    TextTokenizer,
    carried_format,
    control_texts,
    message_format,
)
from chatbot.engine.remote_vocabulary import LlamaCppVocabulary, ServerTokenizer, VllmVocabulary
from chatbot.errors import NoAnswerError, TokenizerError

log = logging.getLogger(__name__)

MARGIN = 1.15
"""By which an estimate is higher than what similar texts take."""
NEARLY_TOKENS = 8
"""A tokenizer that is so near the server's count of the sample is a better guess than none."""
USUAL_OVERHEADS = Overheads(first=20, turn=12)
_UNKNOWN_LETTER, _UNKNOWN_OTHER = 1 / 3, 1.5
"""Tokens a character where the server reports nothing to go by: of a poor vocabulary."""


@dataclass(frozen=True, slots=True)
class Counter:
    """Someone who can count the tokens of a text."""

    name: str
    count: CountText
    defuse: Defuse = defuse_any
    is_estimate: bool = False


def choose_way(
    client: RemoteClient,
    facts: ServerFacts,
    *,
    local: ChatTokenizer | None,
    counters: Callable[[], Iterator[Counter]],
) -> Way:
    """The first way, from the most exact on, that the server's count of a sample confirms.

    `local` is the model's tokenizer if it is on this machine; `counters` are those that know no
    chat template. Raises RemoteError where the server cannot be asked at all.
    """
    prober = Prober(client, facts)
    way = _by_ids_of_server(client, facts, prober, local)
    if way is None and local is not None:
        way = _by_local(facts, prober, local)
    if way is not None:
        return way
    return _by_messages(facts, prober, _all_counters(client, facts, local, counters))


def _by_ids_of_server(
    client: RemoteClient, facts: ServerFacts, prober: Prober, local: ChatTokenizer | None
) -> Way | None:
    name = f"remote:{facts.model}"
    try:
        if facts.kind == "llama.cpp":
            theirs = ServerTokenizer(name, LlamaCppVocabulary(client))
        elif facts.kind in ("vLLM", "SGLang"):
            theirs = ServerTokenizer(name, VllmVocabulary(client, facts.model))
        else:
            return None
    except (TemplateUnusableError, TokenizerError) as error:
        log.info("The server's own tokenizer cannot be used: %s", error)
        return None
    way = Way("token ids", theirs, "the server")
    if local is not None and _same_vocabulary(local, theirs):
        way = replace(way, tokenizer=local, counted_by="the model's tokenizer, as the server does")
    return way if prober.difference(way) == 0 else None


def _same_vocabulary(local: ChatTokenizer, theirs: ChatTokenizer) -> bool:
    """Ours answers in microseconds; it may stand in where it gives the same ids."""
    texts = [SAMPLE_QUESTION, ENGLISH, KOREAN, *(said for _, said in SAMPLE_TURNS[1:])]
    plain = all(local.encode(text) == theirs.encode(text) for text in texts)
    return plain and local.chat_format.end == theirs.chat_format.end


def _by_local(facts: ServerFacts, prober: Prober, local: ChatTokenizer) -> Way | None:
    """The server must count a text as we do before we believe that it has this vocabulary."""
    text = _text_way(facts, local)
    difference = prober.difference(text)
    if difference == 1:
        begin = local.chat_format.begin[:1]
        if begin and begin[0] in local.control_ids:
            text = replace(text, drops_begin=True)
        else:
            text = _text_way(facts, local, begins_alone=True)
        difference = prober.difference(text)
    if difference != 0:
        log.info("The tokenizer at hand counts %s tokens otherwise than the server", difference)
        return None
    ids = Way("token ids", local, text.counted_by)
    if facts.kind != "transformers" and prober.difference(ids) == 0:
        return ids
    return text


def _text_way(facts: ServerFacts, local: ChatTokenizer, *, begins_alone: bool = False) -> Way:
    def make_format(count: CountText) -> ChatFormat:
        made = carried_format(local, count)
        return replace(made, begin=(carry_control(""), *made.begin)) if begins_alone else made

    tokenizer = TextTokenizer(
        f"remote-text:{local.name}",
        lambda text: len(local.encode(text)),
        defuser(control_texts(local)),
        make_format=make_format,
    )
    return Way("text", tokenizer, "the model's tokenizer")


def _all_counters(
    client: RemoteClient,
    facts: ServerFacts,
    local: ChatTokenizer | None,
    counters: Callable[[], Iterator[Counter]],
) -> Iterator[Counter]:
    if facts.kind == "llama-cpp-python":
        yield Counter("the server", _extras_count(client))
    if local is not None:
        yield Counter("the model's tokenizer", lambda text: len(local.encode(text)))
    yield from counters()


def _by_messages(facts: ServerFacts, prober: Prober, counters: Iterator[Counter]) -> Way:
    """The server writes the template; what that takes is measured."""
    best: Way | None = None
    for counter in counters:
        way = _message_way(facts, counter, _measured(facts, prober, counter))
        difference = prober.difference(way)
        if difference == 0:
            return way
        if best is None and abs(difference or 0) <= NEARLY_TOKENS:
            # Right but for the seams of the template, or by a server that tells no count.
            over = _measured(facts, prober, counter)
            wide = Overheads(over.first + NEARLY_TOKENS, over.turn + 1)
            best = _message_way(facts, replace(counter, is_estimate=True), wide)
    if best is not None:
        return best
    estimate = _estimate(facts, prober)
    return _message_way(facts, estimate, _measured(facts, prober, estimate))


def _message_way(facts: ServerFacts, counter: Counter, overheads: Overheads) -> Way:
    tokenizer = TextTokenizer(
        f"remote-chat:{facts.model}:{counter.name}",
        counter.count,
        counter.defuse,
        make_format=lambda _: message_format(overheads),
        estimated=counter.is_estimate,
    )
    return Way("messages", tokenizer, counter.name, counter.is_estimate)


def _measured(facts: ServerFacts, prober: Prober, counter: Counter) -> Overheads:
    """What the server's template takes, from its counts of two tiny chats."""
    one = Counter(counter.name, lambda text: len(text))  # each content is one letter: one token
    way = _message_way(facts, one, Overheads(3, 2))
    encode, form = way.tokenizer.encode, way.tokenizer.chat_format
    short = (*form.begin, *encode("a"), *form.after_system, *encode("a"))
    long = (*short, *form.after_user, *encode("a"), *form.after_assistant, *encode("a"))
    first = prober.reported_tokens(way, (*short, *form.end))
    more = prober.reported_tokens(way, (*long, *form.end))
    if first is None or more is None:
        return USUAL_OVERHEADS
    return Overheads(max(3, first - 2), max(2, more - first - 2))


def _estimate(facts: ServerFacts, prober: Prober) -> Counter:
    """Tokens a character of two languages as the server counts them, with a margin.

    Signs are counted as a token each, and what breaks up a control token as three.
    """
    letter, other = _UNKNOWN_LETTER, _UNKNOWN_OTHER
    base = Counter("an estimate", lambda text: 1)
    way = _message_way(facts, base, Overheads(3, 2))
    form = way.tokenizer.chat_format
    counts = []
    for text in ("a", ENGLISH, KOREAN):
        ids = (*form.begin, *form.after_system, *way.tokenizer.encode(text), *form.end)
        counts.append(prober.reported_tokens(way, ids))
    empty, english, korean = counts
    if empty is not None and english is not None and korean is not None:
        letters, signs, _ = split_chars(ENGLISH)
        letter = max(0.1, (english - empty + 1 - signs) / letters)
        letters, signs, others = split_chars(KOREAN)
        other = max(0.1, (korean - empty + 1 - signs - letter * letters) / others)

    def count(text: str) -> int:
        letters, signs, others = split_chars(text)
        tokens = letter * letters + signs + other * others + 3 * text.count(WORD_JOINER)
        return math.ceil(MARGIN * tokens)

    return Counter("an estimate", count, is_estimate=True)


def _extras_count(client: RemoteClient) -> CountText:
    def ask(text: str) -> int:
        try:
            found = (client.ask("/extras/tokenize/count", {"input": text}) or {}).get("count")
        except NoAnswerError as error:
            raise TokenizerError(str(error)) from error
        if type(found) is not int or not may_have(text, found):
            raise TokenizerError(f"The server {client.shown} no longer counts tokens; restart it.")
        return found

    begins = ask("")
    return lambda text: ask(text) - begins if text else 0
