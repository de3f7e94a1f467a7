"""What a model's configuration says of its size; reads no files and knows no bytes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from chatbot.errors import ModelError


@dataclass(frozen=True, slots=True)
class ModelFigures:
    """What the arithmetic needs to know of a decoder-only model."""

    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    intermediate: int
    vocabulary: int
    tied: bool
    """Whether the output layer shares the embedding's weights."""
    window_tokens: int
    """Longest prompt and reply together that the model was trained for."""
    linear_parameters: int
    """Parameters of the layers' matrices: those that a quantization packs."""
    family: str = ""
    """What models of one kind share, such as "llama"."""

    @property
    def outer_parameters(self) -> int:
        """Parameters of embedding and output layer, which stay in 16 bit."""
        return self.vocabulary * self.hidden * (1 if self.tied else 2)

    @property
    def parameters(self) -> int:
        return self.linear_parameters + self.outer_parameters


def figures_of(config: Mapping[str, Any]) -> ModelFigures:
    """The figures in a config.json. Raises ModelError naming what is not there."""
    inner = config.get("text_config")
    values: Mapping[str, Any] = inner if isinstance(inner, Mapping) else config

    def number(*names: str) -> int:
        for name in names:
            found = values.get(name)
            if isinstance(found, int) and not isinstance(found, bool) and found > 0:
                return found
        message = (
            f"The model's config.json gives no {names[0]}, so it is no decoder-only chat model; "
            "choose one such as Llama, Qwen2 or Mistral."
        )
        raise ModelError(message)

    hidden, heads = number("hidden_size", "n_embd"), number("num_attention_heads", "n_head")
    layers = number("num_hidden_layers", "n_layer")
    kv_heads = values.get("num_key_value_heads") or heads
    head_dim = values.get("head_dim") or hidden // heads
    intermediate = values.get("intermediate_size") or 4 * hidden
    attention = hidden * head_dim * (2 * heads + 2 * kv_heads)
    experts = values.get("num_local_experts") or values.get("num_experts") or 1
    expert_width = values.get("moe_intermediate_size") if experts > 1 else None
    feed_forward = 3 * hidden * (expert_width or intermediate) * experts
    tied = bool(values.get("tie_word_embeddings", config.get("tie_word_embeddings", False)))
    return ModelFigures(
        layers=layers,
        hidden=hidden,
        heads=heads,
        kv_heads=kv_heads,
        head_dim=head_dim,
        intermediate=intermediate,
        vocabulary=number("vocab_size"),
        tied=tied,
        window_tokens=number("max_position_embeddings", "n_positions"),
        linear_parameters=layers * (attention + feed_forward + 2 * hidden) + hidden,
        family=str(values.get("model_type") or config.get("model_type", "")),
    )
