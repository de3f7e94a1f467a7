"""Loads a chat tokenizer from a folder or file; knows nothing of models or weights."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from chatbot.engine.base import ChatTokenizer
from chatbot.engine.hf_tokenizer import load_hf
from chatbot.engine.llama3_tokenizer import is_tiktoken_file, load_llama3
from chatbot.errors import TokenizerError


def load_tokenizer(
    path: Path | str, *, end_ids: Sequence[int] | int | None = None
) -> ChatTokenizer:
    """Load a Hugging Face folder, a tokenizer.json, or Llama 3's own tokenizer.model.

    `end_ids` are further end tokens, as a model's generation_config names them (one or several);
    those in the same folder's generation_config.json and config.json are found without it.
    Raises TokenizerError with a sentence when there is nothing usable.
    """
    path = Path(path).expanduser()
    extra = (end_ids,) if isinstance(end_ids, int) else tuple(end_ids or ())
    if not path.exists():
        raise TokenizerError(
            f"There is no tokenizer at {path}; give a model folder, a tokenizer.json or "
            "Llama 3's tokenizer.model."
        )
    if path.is_file():
        return _load_file(path, extra)
    if (path / "tokenizer.json").is_file():
        return load_hf(path / "tokenizer.json", end_ids=extra)
    own = path / "tokenizer.model"
    if own.is_file() and is_tiktoken_file(own):
        return load_llama3(own)
    if not any((path / name).is_file() for name in _CONVERTIBLE):
        raise TokenizerError(
            f"The folder {path} has no tokenizer in it; it needs a tokenizer.json or a "
            "tokenizer.model."
        )
    return load_hf(path, end_ids=extra)


# Older files that the transformers library turns into its fast form.
_CONVERTIBLE = ("tokenizer.model", "vocab.json", "spiece.model", "sentencepiece.bpe.model")


def _load_file(path: Path, end_ids: tuple[int, ...]) -> ChatTokenizer:
    if path.suffix == ".json":
        return load_hf(path, end_ids=end_ids)
    if path.suffix == ".model" or is_tiktoken_file(path):
        if is_tiktoken_file(path):
            return load_llama3(path)
        return load_hf(path.parent, end_ids=end_ids)
    raise TokenizerError(
        f"{path.name} is no tokenizer file; give a model folder, a tokenizer.json or Llama 3's "
        "tokenizer.model."
    )
