"""Prompts for servers that take text: numbers that stand for tokens and carry the text. Pure.

A prompt of ours is a tuple of ids, one for each token. Where the vocabulary is at the server, an id
is a number that holds a piece of text instead: their count is the count of tokens, and joined they
give the text back. Numbers with a leading byte 1 are ordinary text, with 2 control tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby, pairwise

_TEXT, _CONTROL = b"\x01", b"\x02"

CountText = Callable[[str], int]


def carry_text(text: str, tokens: int) -> tuple[int, ...]:
    """`text` in so many ids. The pieces are as even as bytes allow, not the real tokens."""
    data = text.encode()
    if data and not tokens:
        tokens = 1
    cuts = [len(data) * n // tokens for n in range(tokens + 1)] if tokens else []
    return tuple(int.from_bytes(_TEXT + data[start:end]) for start, end in pairwise(cuts))


def carry_control(text: str) -> int:
    """A control token as one id."""
    return int.from_bytes(_CONTROL + text.encode())


def is_control(token_id: int) -> bool:
    return _bytes(token_id)[:1] == _CONTROL


def text_of(token_ids: Iterable[int]) -> str:
    """The ordinary text in `token_ids`; broken characters at the seams give U+FFFD."""
    data = b"".join(raw[1:] for i in token_ids if (raw := _bytes(i))[:1] == _TEXT)
    return data.decode("utf-8", "replace")


def control_of(token_id: int) -> str:
    """The text of a control token."""
    return _bytes(token_id)[1:].decode()


def runs(token_ids: Sequence[int]) -> Iterator[tuple[bool, tuple[int, ...]]]:
    """Stretches of control tokens (True) and of text (False), in order."""
    for kind, ids in groupby(token_ids, key=is_control):
        yield kind, tuple(ids)


def _bytes(token_id: int) -> bytes:
    return token_id.to_bytes((token_id.bit_length() + 7) // 8)
