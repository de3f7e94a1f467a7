"""A tokenizer.json through the tokenizers library; knows nothing of weights.

The transformers library is imported only for folders without a tokenizer.json: it takes over
three seconds to import, the tokenizers library a tenth of one, and the ids are the same.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeGuard

from tokenizers import AddedToken, Tokenizer

from chatbot.engine.base import ChatFormat
from chatbot.engine.chat_format import Vocabulary, build_format
from chatbot.engine.hf_pieces import PieceDecoder
from chatbot.engine.text_codec import cached
from chatbot.errors import TokenizerError

# Markers of turns as model makers write them, which some files forget to call special.
_MARKER = re.compile(r"<[|｜].*>|<.*[|｜]>|\[/?[A-Z_]+\]|<(start|end|begin)_of_\w+>", re.DOTALL)
_TOKEN_NAMES = ("bos_token", "eos_token", "unk_token", "pad_token", "sep_token", "cls_token")


@dataclass(frozen=True, slots=True)
class TokenizerFiles:
    """What the files beside a tokenizer say about chatting with it."""

    template: str | None = None
    named_tokens: Mapping[str, str] = field(default_factory=dict)
    end_ids: frozenset[int] = frozenset()
    control_tokens: frozenset[str] = frozenset()
    adds_bos: bool | None = None


def load_hf(path: Path, *, end_ids: Iterable[int] = ()) -> HFTokenizer:
    """Load a tokenizer.json with the files beside it, or a folder that has only older files.

    Raises TokenizerError when the files are damaged or of an unknown kind.
    """
    folder = path if path.is_dir() else path.parent
    files = read_files(folder)
    if path.is_dir():
        tokenizer, digest = _convert(path)
    else:
        tokenizer, digest = _read(path)
    return HFTokenizer(tokenizer, files, name=f"hf:{digest[:16]}", end_ids=end_ids)


class HFTokenizer:
    """A chat tokenizer over the tokenizers library."""

    def __init__(
        self,
        tokenizer: Tokenizer,
        files: TokenizerFiles | None = None,
        *,
        name: str,
        end_ids: Iterable[int] = (),
    ) -> None:
        files = files or TokenizerFiles()
        self.name = name
        self._tokenizer = tokenizer
        # A file may ask for cut or padded output: neither may ever happen to a prompt.
        tokenizer.no_truncation()
        tokenizer.no_padding()
        control = _mark_control_tokens(tokenizer, files)
        self.control_texts = control
        self.control_ids = frozenset(control.values())
        self.encode = cached(self._encode)
        bos_id, adds_bos = _bos(tokenizer, files)
        vocabulary = Vocabulary(
            encode_text=self.encode,
            encode_control=self._encode_control,
            control_tokens=control,
            bos_id=bos_id,
            adds_bos=adds_bos,
            adds_space=_adds_space(tokenizer),
        )
        eos_id = tokenizer.token_to_id(files.named_tokens.get("eos_token", ""))
        known_ends = {*end_ids, *files.end_ids, *([] if eos_id is None else [eos_id])}
        self.chat_format: ChatFormat
        self.format_warning: str | None
        self.chat_format, self.format_warning = build_format(
            vocabulary, files.template, named_tokens=files.named_tokens, end_ids=known_ends
        )
        # From here on every text is ordinary text.
        tokenizer.encode_special_tokens = True
        self.encode = cached(self._encode)
        self._decoder = PieceDecoder(tokenizer, self.control_ids)

    def decode(self, token_ids: Sequence[int]) -> str:
        """Text of `token_ids`; control ids and ids beyond the vocabulary give nothing."""
        return self._decoder.decode(token_ids)

    def _encode(self, text: str) -> tuple[int, ...]:
        # Long runs without spaces need no care: 0.1 to 0.6 s for 250,000 to 1,000,000 letters.
        return tuple(self._tokenizer.encode(text, add_special_tokens=False).ids)

    def _encode_control(self, text: str) -> Sequence[int]:
        return self._tokenizer.encode(text, add_special_tokens=False).ids


def read_files(folder: Path) -> TokenizerFiles:
    """Read template, end tokens and token names from the files of a model folder, if any."""
    config = _json(folder / "tokenizer_config.json")
    named = {name: text for name in _TOKEN_NAMES if (text := _token_text(config.get(name)))}
    for name, value in _json(folder / "special_tokens_map.json").items():
        if name in _TOKEN_NAMES and (text := _token_text(value)):
            named.setdefault(name, text)
    ends: set[int] = set()
    for file in ("generation_config.json", "config.json"):
        value = _json(folder / file).get("eos_token_id")
        ends.update(v for v in (value if isinstance(value, list) else [value]) if _is_id(v))
    declared = config.get("added_tokens_decoder") or {}
    control = {text for e in declared.values() if e.get("special") and (text := _token_text(e))}
    return TokenizerFiles(
        template=_template(folder, config),
        named_tokens=named,
        end_ids=frozenset(ends),
        control_tokens=frozenset(control),
        adds_bos=config.get("add_bos_token"),
    )


def _template(folder: Path, config: Mapping[str, Any]) -> str | None:
    file = folder / "chat_template.jinja"
    if file.is_file():
        try:
            return file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise TokenizerError(f"{file} cannot be read ({error}); fetch it again.") from error
    value = config.get("chat_template") or _json(folder / "chat_template.json").get("chat_template")
    if isinstance(value, list):  # several named ones
        named = {entry.get("name"): entry.get("template") for entry in value}
        value = named.get("default")
    return value if isinstance(value, str) else None


def _mark_control_tokens(tokenizer: Tokenizer, files: TokenizerFiles) -> dict[str, int]:
    """Make every token that could forge a turn a special one; return all special tokens."""
    added = {token.content: token for token in tokenizer.get_added_tokens_decoder().values()}
    wanted = files.control_tokens | set(files.named_tokens.values())
    forgeable = {t for t, token in added.items() if not token.special and _MARKER.fullmatch(t)}
    forgeable |= {t for t in wanted if tokenizer.token_to_id(t) is not None}
    for text in sorted(forgeable):
        token = added.get(text) or AddedToken(text, normalized=False)
        token.special = True
        tokenizer.add_special_tokens([token])
    after = tokenizer.get_added_tokens_decoder()
    return {token.content: id_ for id_, token in after.items() if token.special}


def _bos(tokenizer: Tokenizer, files: TokenizerFiles) -> tuple[int | None, bool]:
    """The begin token, and whether the tokenizer puts it before a text by itself."""
    bare = tokenizer.encode("a", add_special_tokens=False).ids
    full = tokenizer.encode("a", add_special_tokens=True).ids
    added = full[0] if full and full[0] not in bare else None
    named = tokenizer.token_to_id(files.named_tokens.get("bos_token", ""))
    bos = named if named is not None else added
    adds = added is not None and added == bos
    return bos, adds if files.adds_bos is None else bool(files.adds_bos)


def _adds_space(tokenizer: Tokenizer) -> bool:
    ids = tokenizer.encode("a", add_special_tokens=False).ids
    first = tokenizer.id_to_token(ids[0]) if ids else None
    return bool(first) and str(first).startswith("▁")


def _read(path: Path) -> tuple[Tokenizer, str]:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise TokenizerError(f"The tokenizer {path} cannot be read: {error.strerror}.") from error
    try:
        return Tokenizer.from_buffer(data), hashlib.sha256(data).hexdigest()
    except Exception as error:  # the library raises bare Exception for a damaged file
        raise TokenizerError(
            f"The tokenizer {path} is damaged or of an unknown kind ({error}); fetch it again."
        ) from error


def _convert(folder: Path) -> tuple[Tokenizer, str]:
    from transformers import AutoTokenizer

    try:
        slow = AutoTokenizer.from_pretrained(str(folder), local_files_only=True)
        tokenizer = slow.backend_tokenizer
    except (OSError, ValueError, ImportError, AttributeError, KeyError) as error:
        raise TokenizerError(
            f"The tokenizer in {folder} cannot be read ({error}); it needs a tokenizer.json."
        ) from error
    text = tokenizer.to_str()
    return Tokenizer.from_str(text), hashlib.sha256(text.encode()).hexdigest()


def _json(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise TokenizerError(f"{path} cannot be read ({error}); fetch it again.") from error
    return value if isinstance(value, dict) else {}


def _token_text(value: Any) -> str | None:
    if isinstance(value, dict):
        value = value.get("content")
    return value if isinstance(value, str) and value else None


def _is_id(value: Any) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
