"""A real conversation as a case of a suite, with suggested assertions, to be edited by hand. Pure.

What is suggested: figures and names that a reply took from earlier turns, facts that it needed,
and documents that it cited.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import yaml

from chatbot.facts import extract_facts
from chatbot.figures import numbers
from chatbot.messages import Conversation, Turn
from chatbot.proper_names import english_names, korean_names
from chatbot.records import storable
from chatbot.regression.texts import holds
from chatbot.titles import title_from

MOST_SUGGESTIONS = 3
"""Of one kind, for one turn: more would only say the same again."""
_HEAD = """\
# Recorded from a chat. Say under 'why' what must stay so, and keep of each 'assert' what matters:
# they are suggestions. 'reply' is what was answered; only --model scripted uses it.
# Documents that are named must lie in the folder of this file: put a copy of each there.
"""


def case_from(conversation: Conversation) -> str:
    """A whole suite file with this conversation as its case; loads as it is.

    But for its documents, which are files that only the user has.
    """
    case: dict[str, Any] = {
        "id": _id(conversation),
        "why": f"Recorded from the chat {_title(conversation)!r}; say here what must stay so.",
    }
    if conversation.system_text:
        case["system"] = conversation.system_text
    documents = sorted({name for turn in conversation.turns for name in _documents(turn)})
    if documents:
        case["documents"] = documents
    case["turns"] = list(_turns(conversation)) or [{"user": "Hello?"}]
    text = yaml.safe_dump(
        _storable({"version": 1, "cases": [case]}), allow_unicode=True, sort_keys=False, width=96
    )
    return _HEAD + str(text)


def _documents(turn: Turn) -> Iterator[str]:
    """Those that the reply cited, and those whose passages it was made from."""
    yield from (c.document for c in turn.citations)
    if turn.best_sentence:
        yield turn.best_sentence.document
    passages = turn.trace.segments if turn.trace else ()
    yield from (s.document for s in passages if s.document)


def _turns(conversation: Conversation) -> Iterator[dict[str, Any]]:
    for place, turn in enumerate(conversation.turns):
        if not turn.question.strip():
            continue
        made: dict[str, Any] = {"user": turn.question}
        asserts = _suggestions(turn, conversation.turns[:place])
        if asserts:
            made["assert"] = asserts
        elif turn.reply.strip():
            made["reply"] = turn.reply
        yield made


def _suggestions(turn: Turn, earlier: Sequence[Turn]) -> list[dict[str, Any]]:
    if not turn.reply.strip() or turn.finish not in ("stop", "length"):
        return []
    taken = list(_taken_over(turn, earlier))[:MOST_SUGGESTIONS]
    made: list[dict[str, Any]] = [{"contains": text} for text in taken]
    facts = [fact.text for fact in extract_facts(earlier)]
    made += [{"remembers": text} for text in taken if any(holds(fact, text) for fact in facts)]
    sources = dict.fromkeys(
        f"{c.document}#{c.page}" if c.page is not None else c.document for c in turn.citations
    )
    made += [{"cites": source} for source in list(sources)[:MOST_SUGGESTIONS]]
    quotes = dict.fromkeys(c.quote for c in turn.citations)
    made += [{"retrieves": " ".join(quote.split())} for quote in list(quotes)[:1] if quote.strip()]
    return made


def _taken_over(turn: Turn, earlier: Sequence[Turn]) -> Iterator[str]:
    """Figures and names of the reply that the user, or a cited document, had said before."""
    said = "\n".join([*(one.question for one in earlier), *(c.quote for c in turn.citations)])
    found = [number.text for number in numbers(turn.reply)]
    found += [*english_names(turn.reply), *korean_names(turn.reply)]
    for text in dict.fromkeys(text.strip() for text in found):
        if text and holds(said, text) and not holds(turn.question, text):
            yield text


def _title(conversation: Conversation) -> str:
    first = conversation.turns[0].question if conversation.turns else ""
    return " ".join((conversation.title or title_from(first) or "without a title").split())


def _id(conversation: Conversation) -> str:
    words = re.findall(r"\w+", _title(conversation).casefold())
    return ("-".join(words)[:60].strip("-_") or "recorded-chat").lstrip("_")


def _storable(value: Any) -> Any:
    if isinstance(value, str):
        return storable(value)
    if isinstance(value, dict):
        return {key: _storable(item) for key, item in value.items()}
    return [_storable(item) for item in value] if isinstance(value, list) else value
