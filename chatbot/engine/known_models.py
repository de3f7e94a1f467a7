"""Public figures of a few models, for plans on machines that cannot reach them; only figures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def _llama(
    hidden: int, layers: int, heads: int, intermediate: int, **more: Any
) -> Mapping[str, Any]:
    return {
        "model_type": "llama",
        "hidden_size": hidden,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "num_key_value_heads": 8,
        "intermediate_size": intermediate,
        "vocab_size": 128_256,
        "tie_word_embeddings": False,
        **more,
    }


def _qwen(
    hidden: int, layers: int, heads: int, intermediate: int, **more: Any
) -> Mapping[str, Any]:
    return {
        "model_type": "qwen2",
        "hidden_size": hidden,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "num_key_value_heads": 2,
        "intermediate_size": intermediate,
        "vocab_size": 151_936,
        "tie_word_embeddings": True,
        "max_position_embeddings": 32_768,
        **more,
    }


_8B = (4096, 32, 32, 14_336)
_70B = (8192, 80, 64, 28_672)
_1B = {"head_dim": 64, "tie_word_embeddings": True}
_LONG = {"max_position_embeddings": 131_072}
_SHORT = {"max_position_embeddings": 8192}

KNOWN_CONFIGS: Mapping[str, Mapping[str, Any]] = {
    "demo": {
        "model_type": "llama",
        "hidden_size": 576,
        "num_hidden_layers": 30,
        "num_attention_heads": 9,
        "num_key_value_heads": 3,
        "intermediate_size": 1536,
        "vocab_size": 49_152,
        "tie_word_embeddings": True,
        **_SHORT,
    },
    "meta-llama/Meta-Llama-3-8B-Instruct": _llama(*_8B, **_SHORT),
    "meta-llama/Meta-Llama-3-70B-Instruct": _llama(*_70B, **_SHORT),
    "meta-llama/Llama-3.1-8B-Instruct": _llama(*_8B, **_LONG),
    "meta-llama/Llama-3.1-70B-Instruct": _llama(*_70B, **_LONG),
    "meta-llama/Llama-3.2-1B-Instruct": _llama(2048, 16, 32, 8192, **_1B, **_LONG),
    "meta-llama/Llama-3.2-3B-Instruct": _llama(
        3072, 28, 24, 8192, tie_word_embeddings=True, **_LONG
    ),
    "meta-llama/Llama-3.3-70B-Instruct": _llama(*_70B, **_LONG),
    "Qwen/Qwen2.5-0.5B-Instruct": _qwen(896, 24, 14, 4864),
    "Qwen/Qwen2.5-1.5B-Instruct": _qwen(1536, 28, 12, 8960),
    "Qwen/Qwen2.5-3B-Instruct": _qwen(2048, 36, 16, 11_008),
    "Qwen/Qwen2.5-7B-Instruct": _qwen(
        3584, 28, 28, 18_944, num_key_value_heads=4, vocab_size=152_064, tie_word_embeddings=False
    ),
}
