"""Vocabulary entries of the tokenizers library back to bytes; knows nothing of prompts."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from tokenizers import Tokenizer

_MAX_ID = 2**32  # the library holds ids in 32 bits
_BYTE_PIECE = re.compile(r"<0x([0-9A-Fa-f]{2})>")


class PieceDecoder:
    """Decodes ids through their bytes, so that a character split over tokens comes out whole.

    Vocabularies that are neither byte-level nor SentencePiece use the library's own decoder.
    """

    def __init__(self, tokenizer: Tokenizer, control_ids: frozenset[int]) -> None:
        self._tokenizer = tokenizer
        self._control_ids = control_ids
        self._added = {
            id_: token.content.encode()
            for id_, token in tokenizer.get_added_tokens_decoder().items()
        }
        self._bytes: dict[int, bytes] = {}
        kinds = _decoder_kinds(tokenizer)
        self._byte_level = "ByteLevel" in kinds
        self._sentencepiece = bool(kinds & {"ByteFallback", "Metaspace"})
        self._strips_first_space = bool(kinds & {"Strip", "Metaspace"})

    def decode(self, token_ids: Sequence[int]) -> str:
        """Text of `token_ids` without control tokens; incomplete characters give U+FFFD."""
        ids = [i for i in token_ids if i not in self._control_ids]
        if not (self._byte_level or self._sentencepiece):
            return str(self._tokenizer.decode(ids, skip_special_tokens=True))
        data = b"".join(self._bytes_of(i) for i in ids)
        if self._strips_first_space and data[:1] == b" ":
            data = data[1:]
        return data.decode("utf-8", "replace")

    def _bytes_of(self, id_: int) -> bytes:
        known = self._bytes.get(id_)
        if known is None:
            known = self._added.get(id_)
            if known is None:
                # Models are padded to more ids than the vocabulary has.
                piece = self._tokenizer.id_to_token(id_) if 0 <= id_ < _MAX_ID else None
                known = self._piece_bytes(piece or "")
            self._bytes[id_] = known
        return known

    def _piece_bytes(self, piece: str) -> bytes:
        if self._byte_level:
            if all(char in _BYTE_OF_CHAR for char in piece):
                return bytes(_BYTE_OF_CHAR[char] for char in piece)
            return piece.encode()
        if match := _BYTE_PIECE.fullmatch(piece):
            return bytes([int(match[1], 16)])
        return piece.replace("▁", " ").encode()


def _decoder_kinds(tokenizer: Tokenizer) -> set[str]:
    """Names of the steps of the library's decoder."""
    decoder: Any = tokenizer.decoder
    if decoder is None:
        return set()
    state = json.loads(decoder.__getstate__())
    return {step["type"] for step in (state, *state.get("decoders", ()))}


def _byte_of_char() -> dict[str, int]:
    """Byte-level vocabularies write bytes as printable characters: GPT-2's fixed table."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    table = {chr(byte): byte for byte in printable}
    others = [byte for byte in range(256) if byte not in printable]
    table.update({chr(256 + place): byte for place, byte in enumerate(others)})
    return table


_BYTE_OF_CHAR = _byte_of_char()
