"""A tokenizer without a vocabulary file, for scripted engines; knows nothing of any model."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from chatbot.engine.base import ChatFormat
from chatbot.engine.chat_format import CHATML
from chatbot.engine.text_codec import sound

IM_START, IM_END, END_OF_TEXT = 1, 2, 3
_CONTROL = {"<|im_start|>": IM_START, "<|im_end|>": IM_END, "<|endoftext|>": END_OF_TEXT}
_CONTROL_PATTERN = re.compile("(" + "|".join(map(re.escape, _CONTROL)) + ")")
# Every character belongs to one of these, so encoding loses nothing.
_WORD = re.compile(r" ?\w+| ?[^\w\s]+|\s+")
# About the density of real vocabularies: 1 to 2 ids for an English word, 2 Hangul syllables an
# id. Longer words, and characters at the seam, are split between ids, as in real ones.
_BYTES_PER_ID = 6


class ScriptedTokenizer:
    """Words in ids: an id holds up to six UTF-8 bytes, as a number with a leading 1.

    Ids below 2**49, the same in every process; `decode(encode(text)) == text` for valid Unicode.
    """

    name = "scripted-words:1"
    control_ids = frozenset(_CONTROL.values())
    format_warning: str | None = None

    def __init__(self) -> None:
        def control(text: str) -> tuple[int, ...]:
            parts = _CONTROL_PATTERN.split(text)
            return tuple(
                id_
                for part in parts
                for id_ in ((_CONTROL[part],) if part in _CONTROL else self.encode(part))
            )

        self.chat_format = ChatFormat(
            begin=control(CHATML.begin),
            after_system=control(CHATML.after_system),
            after_user=control(CHATML.after_user),
            after_assistant=control(CHATML.after_assistant),
            end=control(CHATML.end),
            stop_ids=self.control_ids,
        )

    def encode(self, text: str) -> tuple[int, ...]:
        """Ids of `text` as ordinary text; lone surrogates become U+FFFD."""
        ids = []
        for word in _WORD.findall(sound(text)):
            data = word.encode()
            ids += [
                int.from_bytes(b"\x01" + data[start : start + _BYTES_PER_ID])
                for start in range(0, len(data), _BYTES_PER_ID)
            ]
        return tuple(ids)

    def decode(self, token_ids: Sequence[int]) -> str:
        """Text of `token_ids` without control tokens; an incomplete character gives U+FFFD."""
        return b"".join(map(_bytes_of, token_ids)).decode("utf-8", "replace")

    def show(self, token_ids: Sequence[int]) -> str:
        """Text of `token_ids` with control tokens written out, for scripts and test output."""
        names = {id_: name.encode() for name, id_ in _CONTROL.items()}
        data = b"".join(names.get(id_) or _bytes_of(id_) for id_ in token_ids)
        return data.decode("utf-8", "replace")


@lru_cache(maxsize=16_384)
def _bytes_of(token_id: int) -> bytes:
    if token_id < 0x100:  # control ids, and numbers that no text gives
        return b""
    data = token_id.to_bytes((token_id.bit_length() + 7) // 8)
    return data[1:]
