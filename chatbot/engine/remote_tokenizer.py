"""A tokenizer for servers that take prompts as text or messages. Knows no server.

Its ids carry text (see `carriers`); how many there are is counted by whoever knows the vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from chatbot.engine.base import ChatFormat, ChatTokenizer
from chatbot.engine.carriers import (
    CountText,
    carry_control,
    carry_text,
    control_of,
    is_control,
    runs,
    text_of,
)
from chatbot.engine.defuse import Defuse
from chatbot.engine.text_codec import cached, sound

_SYSTEM, _USER, _ASSISTANT, _END = "system:", "user:", "assistant:", "end:"
_ROLES = {_SYSTEM: "system", _USER: "user", _ASSISTANT: "assistant"}


@dataclass(frozen=True, slots=True)
class Overheads:
    """Tokens that a server's own template writes around the contents of messages."""

    first: int
    """Of a system and a user message and the step to the reply."""
    turn: int
    """Of one more turn of an assistant's and a user's message."""


class TextTokenizer:
    """See `ChatTokenizer`. Breaks up control tokens in texts, since a server would read them."""

    format_warning: str | None = None

    def __init__(
        self,
        name: str,
        count: CountText,
        defuse: Defuse,
        *,
        make_format: Callable[[CountText], ChatFormat],
        estimated: bool = False,
    ) -> None:
        """`estimated` says that `count` only estimates, with a margin."""
        self.name = name
        self.estimated = estimated
        self._count = count
        self._defuse = defuse
        self.encode = cached(self._encode)
        self.chat_format = make_format(count)
        parts = self.chat_format
        used = (parts.begin, parts.after_system, parts.after_user, parts.after_assistant, parts.end)
        self.control_ids = frozenset(i for part in used for i in part if is_control(i))
        ends = self.control_ids | parts.stop_ids
        self.control_texts = {control_of(i): i for i in ends if control_of(i)}

    def decode(self, token_ids: Sequence[int]) -> str:
        """See `ChatTokenizer.decode`."""
        return text_of(token_ids)

    def settled(self, token_ids: Sequence[int]) -> tuple[int, ...]:
        """A prompt counted as the server will read it: as whole texts, not piece by piece."""
        ids: list[int] = []
        for control, run in runs(token_ids):
            ids += run if control else self._encode(text_of(run))
        return tuple(ids)

    def _encode(self, text: str) -> tuple[int, ...]:
        text = self._defuse(sound(text))
        return carry_text(text, self._count(text))


def carried_format(local: ChatTokenizer, count: CountText) -> ChatFormat:
    """The chat format of a tokenizer that is at hand, in ids that carry its text."""
    names = {id_: text for text, id_ in control_texts(local).items()}

    def carried(token_ids: Sequence[int]) -> tuple[int, ...]:
        ids: list[int] = []
        plain: list[int] = []
        for token_id in (*token_ids, None):
            if token_id is not None and token_id not in names:
                plain.append(token_id)
                continue
            text = local.decode(plain)
            ids += carry_text(text, count(text))
            plain.clear()
            if token_id is not None:
                ids.append(carry_control(names[token_id]))
        return tuple(ids)

    known = local.chat_format
    return ChatFormat(
        begin=carried(known.begin),
        after_system=carried(known.after_system),
        after_user=carried(known.after_user),
        after_assistant=carried(known.after_assistant),
        end=carried(known.end),
        stop_ids=frozenset(carry_control(names[i]) for i in known.stop_ids if i in names),
        has_system_role=known.has_system_role,
    )


def control_texts(local: ChatTokenizer) -> dict[str, int]:
    """Control tokens by their text; empty where a tokenizer does not tell them."""
    found: dict[str, int] = getattr(local, "control_texts", {})
    return found


def message_format(overheads: Overheads) -> ChatFormat:
    """Control ids that only say which message begins; with what a template writes, as a count."""
    step = max(1, overheads.first // 3)
    before = max(1, overheads.turn // 2)

    def ids(role: str, tokens: int) -> tuple[int, ...]:
        return (carry_control(role), *[carry_control("")] * max(0, tokens - 1))

    return ChatFormat(
        begin=ids(_SYSTEM, step),
        after_system=ids(_USER, step),
        after_user=ids(_ASSISTANT, before),
        after_assistant=ids(_USER, overheads.turn - before),
        end=ids(_END, overheads.first - 2 * step),
        stop_ids=frozenset(),
    )


def prompt_text(token_ids: Sequence[int]) -> str:
    """A prompt as one text, control tokens written out."""
    parts = [
        "".join(map(control_of, run)) if control else text_of(run)
        for control, run in runs(token_ids)
    ]
    return "".join(parts)


def prompt_messages(token_ids: Sequence[int]) -> list[dict[str, str]]:
    """A prompt in `message_format` as messages. An empty system message is left out."""
    messages: list[dict[str, str]] = []
    for control, run in runs(token_ids):
        if not control:
            if not messages:  # a prompt without its beginning
                messages.append({"role": "user", "content": ""})
            messages[-1]["content"] += text_of(run)
            continue
        for name in map(control_of, run):
            if name in _ROLES:
                messages.append({"role": _ROLES[name], "content": ""})
    return [m for m in messages if m["role"] != "system" or m["content"]]
