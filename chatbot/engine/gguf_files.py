"""GGUF files: header -> configuration, and the one-time conversion to a safetensors folder.

Knows nothing of caches or downloads. A GGUF file can be loaded directly, but slowly and into
slow kernels; a converted folder loads in seconds.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from chatbot.engine.cache_folder import Progress, ignore_progress
from chatbot.errors import ModelError
from retrieval.slow_imports import READING_MODELS

# Tokens that end a reply in the chat formats of known families, whatever the file calls its end.
END_TOKENS = (
    *("<|im_end|>", "<|eot_id|>", "<|end_of_text|>", "<|endoftext|>", "<|eom_id|>"),
    *("<end_of_turn>", "<|end|>", "<|eot|>", "</s>"),
)


def check_gguf(path: Path) -> None:
    """Raise ModelError with one sentence unless `path` is a complete, single GGUF file."""
    try:
        with path.open("rb") as file:
            magic = file.read(4)
    except OSError as error:
        message = f"The model file {path} cannot be read: {error.strerror}."
        raise ModelError(message) from error
    if magic != b"GGUF":
        message = (
            f"{path} is not a GGUF file; give a GGUF file, a folder with config.json and "
            "safetensors, a hub name, or demo."
        )
        raise ModelError(message)


def read_header(path: Path) -> dict[str, Any]:
    """The file's single values by name, plus "n_parameters"; arrays and weights are left out.

    Raises ModelError when the file is damaged or only a part of a split model.
    """
    check_gguf(path)
    reader = _open_reader(path)
    values: dict[str, Any] = {}
    for name, entry in reader.fields.items():
        if len(entry.types) == 1 and not name.startswith("GGUF."):
            values[name] = entry.contents()
    if values.get("split.count", 0) > 1:
        message = (
            f"{path} is one part of {values['split.count']}; merge them first with llama.cpp's "
            "llama-gguf-split --merge, and give the merged file."
        )
        raise ModelError(message)
    values["n_parameters"] = sum(int(tensor.n_elements) for tensor in reader.tensors)
    values["has_output_layer"] = any(tensor.name == "output.weight" for tensor in reader.tensors)
    values["n_vocabulary"] = _vocabulary_size(reader)
    return values


def config_of_header(header: dict[str, Any]) -> dict[str, Any]:
    """The header's figures under the names that a config.json uses."""
    arch = header.get("general.architecture", "")

    def value(name: str, default: Any = None) -> Any:
        return header.get(f"{arch}.{name}", default)

    heads = value("attention.head_count")
    return {
        "model_type": arch,
        "num_hidden_layers": value("block_count"),
        "hidden_size": value("embedding_length"),
        "intermediate_size": value("feed_forward_length"),
        "num_attention_heads": heads,
        "num_key_value_heads": value("attention.head_count_kv", heads),
        "head_dim": value("attention.key_length"),
        "max_position_embeddings": value("context_length"),
        "vocab_size": value("vocab_size", header.get("n_vocabulary")),
        "tie_word_embeddings": not header.get("has_output_layer", True),
        "n_parameters": header.get("n_parameters"),
    }


def convert(path: Path, folder: Path, progress: Progress = ignore_progress) -> None:
    """Write `folder` with 16-bit weights, configuration, tokenizer and all end tokens.

    Raises ModelError when the model library does not know the file's architecture.
    """
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig
    from transformers.utils import logging

    logging.disable_progress_bar()
    progress(f"Converting {path.name} (once; takes a while).", None)
    where = {"gguf_file": path.name, "local_files_only": True}
    try:
        with READING_MODELS:
            model = AutoModelForCausalLM.from_pretrained(
                str(path.parent),
                **where,
                dtype="bfloat16",
                quantization_config=GgufConfig(dequantize=True),
            )
        tokenizer = AutoTokenizer.from_pretrained(str(path.parent), **where)
    except Exception as error:  # the tokenizers library raises nothing more particular
        raise ModelError(_cannot_convert(path, error)) from error
    progress(f"Writing the converted model of {path.name}.", None)
    _write_weights(model, folder)
    tokenizer.save_pretrained(folder)
    _repair_digits(path, folder)
    _write_end_tokens(folder, _end_ids(model, tokenizer))


def _open_reader(path: Path) -> Any:
    from gguf import GGUFReader

    try:
        return GGUFReader(str(path))
    except (ValueError, IndexError, KeyError, OverflowError, MemoryError) as error:
        message = f"The GGUF file {path} is damaged or incomplete; download it again."
        raise ModelError(message) from error


def _vocabulary_size(reader: Any) -> int | None:
    tokens = reader.fields.get("tokenizer.ggml.tokens")
    return len(tokens.data) if tokens is not None else None


def _write_weights(model: Any, folder: Path) -> None:
    from safetensors.torch import save_file

    # The loaded model may refuse save_pretrained, since it stands for a quantised file.
    tied = set(model.all_tied_weights_keys) if model.config.tie_word_embeddings else set()
    weights = {
        name: tensor.contiguous() for name, tensor in model.state_dict().items() if name not in tied
    }
    save_file(weights, str(folder / "model.safetensors"), metadata={"format": "pt"})
    config = model.config.to_dict()
    for name in ("quantization_config", "_name_or_path", "_model_name_or_path"):
        config.pop(name, None)
    config["architectures"] = [type(model).__name__]
    _write_json(folder / "config.json", config)


def _repair_digits(path: Path, folder: Path) -> None:
    """Split digits one by one where the file's vocabulary was made so.

    The converter knows no rule for "smollm" and falls back to one that keeps numbers whole,
    which gives token sequences that the model has never seen.
    """
    if read_header(path).get("tokenizer.ggml.pre") != "smollm":
        return
    file = folder / "tokenizer.json"
    content = json.loads(file.read_text(encoding="utf-8"))
    content["pre_tokenizer"] = {
        "type": "Sequence",
        "pretokenizers": [
            {"type": "Digits", "individual_digits": True},
            {
                "type": "ByteLevel",
                "add_prefix_space": False,
                "trim_offsets": True,
                "use_regex": True,
            },
        ],
    }
    file.write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")


def _end_ids(model: Any, tokenizer: Any) -> list[int]:
    named = model.config.eos_token_id
    ids = {named} if isinstance(named, int) else set(named or ())
    vocabulary = tokenizer.get_added_vocab()
    ids.update(vocabulary[token] for token in END_TOKENS if token in vocabulary)
    return sorted(ids)


def _write_end_tokens(folder: Path, end_ids: Iterable[int]) -> None:
    _write_json(folder / "generation_config.json", {"eos_token_id": list(end_ids)})


def _write_json(path: Path, content: dict[str, Any]) -> None:
    path.write_text(json.dumps(content, indent=2, ensure_ascii=False) + os.linesep, "utf-8")


def _cannot_convert(path: Path, error: Exception) -> str:
    reason = (
        str(error).strip().splitlines()[0][:200] if str(error).strip() else type(error).__name__
    )
    return (
        f"The GGUF file {path} cannot be converted ({reason}); choose a model of a supported "
        "architecture such as Llama, Qwen2 or Mistral."
    )
