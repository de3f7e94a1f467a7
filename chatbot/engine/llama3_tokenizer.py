"""Llama 3's own tokenizer.model through tiktoken; knows only this one vocabulary."""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import tiktoken

from chatbot.engine.base import ChatFormat
from chatbot.engine.chat_format import Vocabulary, llama3_format
from chatbot.engine.text_codec import cached
from chatbot.errors import TokenizerError

N_RANKS = 128_000
N_SPECIAL = 256
# The pre-tokenisation that Llama 3 was trained with; a fact of the vocabulary.
_PATTERN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|"
    r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
# Positions after the ranks, as in Llama 3.1 and later. Llama 3.0 calls some of them reserved;
# those that a chat uses are the same in both.
_NAMED_SPECIAL = {
    0: "<|begin_of_text|>",
    1: "<|end_of_text|>",
    4: "<|finetune_right_pad_id|>",
    5: "<|step_id|>",
    6: "<|start_header_id|>",
    7: "<|end_header_id|>",
    8: "<|eom_id|>",
    9: "<|eot_id|>",
    10: "<|python_tag|>",
    11: "<|image|>",
}
# The library's regular expression engine aborts on a million spaces in a row. Other runs, of
# letters or line ends, take linear time at any length.
_MAX_SPACES = 100_000
_SPACES = re.compile(r"\s{2,}")


def is_tiktoken_file(path: Path) -> bool:
    """Whether `path` looks like lines of "base64 rank"; False when it cannot be read."""
    try:
        with path.open("rb") as file:
            first = file.readline(200)
    except OSError:
        return False
    parts = first.split()
    return len(parts) == 2 and parts[1] == b"0"


def load_llama3(path: Path) -> Llama3Tokenizer:
    """Read a tokenizer.model. Raises TokenizerError when it is not Llama 3's."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise TokenizerError(f"The tokenizer {path} cannot be read: {error.strerror}.") from error
    try:
        ranks = {
            base64.b64decode(token): int(rank)
            for token, rank in (line.split() for line in data.splitlines() if line)
        }
    except (ValueError, binascii.Error) as error:
        raise TokenizerError(f"The tokenizer {path} is damaged; fetch it again.") from error
    if len(ranks) != N_RANKS or set(ranks.values()) != set(range(N_RANKS)):
        raise TokenizerError(
            f"The tokenizer {path} has {len(ranks):,} entries where Llama 3's has {N_RANKS:,}; "
            "fetch it again, or give a tokenizer.json."
        )
    return Llama3Tokenizer(ranks, name=f"llama3-tiktoken:{hashlib.sha256(data).hexdigest()[:16]}")


class Llama3Tokenizer:
    """The Llama 3 vocabulary: 128,000 ranks and 256 special tokens."""

    format_warning: str | None = None

    def __init__(self, ranks: dict[bytes, int], *, name: str) -> None:
        special = {token: N_RANKS + place for place, token in enumerate(_special_tokens())}
        self.name = name
        self.control_texts = special
        self.control_ids = frozenset(special.values())
        self._encoding = tiktoken.Encoding(
            name, pat_str=_PATTERN, mergeable_ranks=ranks, special_tokens=special
        )
        self.encode = cached(self._encode)
        self.chat_format: ChatFormat = llama3_format(
            Vocabulary(
                encode_text=self.encode,
                encode_control=lambda text: self._encoding.encode(text, allowed_special="all"),
                control_tokens=special,
                bos_id=special["<|begin_of_text|>"],
            )
        )

    @property
    def n_vocab(self) -> int:
        """Entries of the vocabulary, special tokens included."""
        return self._encoding.n_vocab

    def decode(self, token_ids: Sequence[int]) -> str:
        """Text of `token_ids`; control ids and ids beyond the vocabulary give nothing."""
        texts = [i for i in token_ids if 0 <= i < N_RANKS]
        return self._encoding.decode_bytes(texts).decode("utf-8", "replace")

    def _encode(self, text: str) -> tuple[int, ...]:
        ids: list[int] = []
        for piece in _split_spaces(text):
            ids += self._encoding.encode_ordinary(piece)
        return tuple(ids)


def _special_tokens() -> list[str]:
    names = []
    reserved = 0
    for place in range(N_SPECIAL):
        name = _NAMED_SPECIAL.get(place)
        if name is None:
            name = f"<|reserved_special_token_{reserved}|>"
            reserved += 1
        names.append(name)
    return names


def _split_spaces(text: str) -> Iterator[str]:
    """`text` in pieces without more than `_MAX_SPACES` spaces in a row; mostly one piece."""
    start = 0
    if len(text) > _MAX_SPACES:
        for run in _SPACES.finditer(text):
            for cut in range(run.start() + _MAX_SPACES, run.end(), _MAX_SPACES):
                yield text[start:cut]
                start = cut
    yield text[start:]
