"""Small tokenizers trained on the spot, and toy chat templates in the manner of known families."""

from __future__ import annotations

import importlib.util
import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

SENTENCES = (
    "The library opens at nine and closes at six on weekdays.",
    "도서관은 평일 아침 아홉 시에 열고 저녁 여섯 시에 닫습니다.",
    "def add(a, b):\n    return a + b\n",
    "user assistant system model User: Assistant: [INST] [/INST]",
)
CHATML_TOKENS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
LLAMA3_TOKENS = (
    "<|begin_of_text|>",
    "<|end_of_text|>",
    "<|start_header_id|>",
    "<|end_header_id|>",
    "<|eot_id|>",
)
GEMMA_TOKENS = ("<bos>", "<eos>", "<start_of_turn>", "<end_of_turn>")

CHATML = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
CHATML_DEFAULT_SYSTEM = (
    "{% if messages[0].role != 'system' %}<|im_start|>system\nI am Toy.<|im_end|>\n{% endif %}"
    + CHATML
)
CHATML_NO_PROMPT = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
)
CHATML_THINKING = CHATML.replace(
    "assistant\n{% endif %}",
    "assistant\n{% if enable_thinking is defined and not enable_thinking %}"
    "<think>\n\n</think>\n\n{% endif %}{% endif %}",
)
CHATML_PARTS = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{% for part in m.content %}"
    "{% if part.type == 'text' %}{{ part.text }}{% endif %}{% endfor %}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
CHATML_GENERATION = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{% if m.role == 'assistant' %}"
    "{% generation %}{{ m.content }}<|im_end|>{% endgeneration %}{{ '\n' }}"
    "{% else %}{{ m.content }}<|im_end|>\n{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
LLAMA3 = (
    "{% for m in messages %}{% if loop.first %}{{ bos_token }}{% endif %}"
    "<|start_header_id|>{{ m.role }}<|end_header_id|>\n\n{{ m.content | trim }}<|eot_id|>"
    "{% endfor %}{% if add_generation_prompt %}"
    "<|start_header_id|>assistant<|end_header_id|>\n\n{% endif %}"
)
LLAMA31_HEAD = (
    "{% if date_string is not defined %}{% set date_string = strftime_now('%d %b %Y') %}"
    "{% endif %}{{ bos_token }}<|start_header_id|>system<|end_header_id|>\n\n"
    "Today Date: {{ date_string }}\n\n{{ messages[0].content | trim }}<|eot_id|>"
    "{% for m in messages[1:] %}"
)
LLAMA31 = LLAMA31_HEAD + LLAMA3.split("{% endif %}", 1)[1]
NOW = LLAMA31.replace("{{ date_string }}", "{{ strftime_now('%d %b %Y') }}")
GEMMA = (
    "{{ bos_token }}{% if messages[0].role == 'system' %}"
    "{{ raise_exception('System role not supported') }}{% endif %}"
    "{% for m in messages %}{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('Roles must alternate user/assistant') }}{% endif %}"
    "<start_of_turn>{{ 'model' if m.role == 'assistant' else m.role }}\n"
    "{{ m.content | trim }}<end_of_turn>\n{% endfor %}"
    "{% if add_generation_prompt %}<start_of_turn>model\n{% endif %}"
)
DROPS_SYSTEM = GEMMA.replace(
    "{{ raise_exception('System role not supported') }}",
    "{% set messages = messages[1:] %}",
)
MISTRAL = (
    "{{ bos_token }}{% for m in messages %}{% if m.role == 'user' %}"
    "[INST] {{ m.content }} [/INST]{% elif m.role == 'assistant' %} {{ m.content }}{{ eos_token }}"
    "{% else %}{{ raise_exception('Only user and assistant roles are supported') }}"
    "{% endif %}{% endfor %}"
)
SYSTEM_IN_LAST = (
    "{{ bos_token }}{% if messages[0].role == 'system' %}{% set sys = messages[0].content %}"
    "{% set rest = messages[1:] %}{% else %}{% set rest = messages %}{% endif %}"
    "{% for m in rest %}{% if m.role == 'user' %}[INST] {% if loop.last and sys is defined %}"
    "{{ sys }}\n\n{% endif %}{{ m.content }} [/INST]{% else %} {{ m.content }}{{ eos_token }}"
    "{% endif %}{% endfor %}"
)


@cache
def byte_level_json(special: tuple[str, ...], ordinary: tuple[str, ...] = ()) -> str:
    """A byte-level BPE of about 500 entries, as the text of a tokenizer.json."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=500,
        special_tokens=list(special),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(SENTENCES * 3, trainer)
    tokenizer.add_tokens(list(ordinary))
    return tokenizer.to_str()


@cache
def sentencepiece_json(special: tuple[str, ...] = ("<unk>", "<s>", "</s>")) -> str:
    """A BPE with a space before each text and bytes for unknown characters, as Llama 2 has it."""
    tokenizer = Tokenizer(models.BPE(byte_fallback=True, unk_token="<unk>"))
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
    )
    tokenizer.decoder = decoders.Sequence(
        [
            decoders.Replace("▁", " "),
            decoders.ByteFallback(),
            decoders.Fuse(),
            decoders.Strip(" ", 1, 0),
        ]
    )
    pieces = [f"<0x{byte:02X}>" for byte in range(256)]
    trainer = trainers.BpeTrainer(
        vocab_size=600, special_tokens=[*special, *pieces], show_progress=False
    )
    tokenizer.train_from_iterator([*SENTENCES[:1], *SENTENCES[2:]] * 3, trainer)
    data = json.loads(tokenizer.to_str())
    for token in data["added_tokens"]:
        token["special"] = token["content"] in special
    data["added_tokens"] = [t for t in data["added_tokens"] if t["special"]]
    return json.dumps(data)


def model_folder(
    folder: Path,
    tokenizer_json: str,
    *,
    template: str | None = None,
    config: dict[str, Any] | None = None,
    generation: dict[str, Any] | None = None,
) -> Path:
    """Write a model folder as Hugging Face has it, without weights."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "tokenizer.json").write_text(tokenizer_json, encoding="utf-8")
    config = dict(config or {})
    if template is not None:
        config["chat_template"] = template
    (folder / "tokenizer_config.json").write_text(json.dumps(config), encoding="utf-8")
    if generation is not None:
        (folder / "generation_config.json").write_text(json.dumps(generation), encoding="utf-8")
    return folder


def llama3_vocabulary() -> Path:
    """Llama 3's tokenizer.model in the package llama-models; skips the test without it."""
    spec = importlib.util.find_spec("llama_models")
    if spec is None or not spec.submodule_search_locations:
        pytest.skip("needs the package llama-models (pip install --no-deps llama-models==0.3.0)")
    return Path(spec.submodule_search_locations[0]) / "llama3" / "tokenizer.model"
