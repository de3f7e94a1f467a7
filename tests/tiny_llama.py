"""A random Llama of two layers with a tokenizer of letters, made on the spot."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from chatbot.engine.base import ChatFormat, EngineEvent, Finished, SamplingParams
from chatbot.engine.decode import Reader
from chatbot.engine.kv_cache import cache_bytes, new_cache
from chatbot.engine.kv_policy import STEP_TOKENS
from chatbot.engine.loading import LoadedModel
from chatbot.engine.local import TransformersEngine
from chatbot.engine.memory import CacheKind, PlanRequest, make_plan
from chatbot.engine.model_figures import figures_of
from chatbot.engine.models import ModelFiles

END_ID = 256
START_ID = 257
PROMPT = (START_ID, *(f"{n} little words".encode()[n % 14] for n in range(70)))
FIRST_LETTER = 0xAC00
WINDOW_TOKENS = 96


def token_bytes(model: Any, kind: CacheKind = "16bit") -> int:
    """What one token takes in a cache of a model, measured."""
    cache = new_cache(model, kind)
    Reader(model, cache, ()).read(tuple(range(STEP_TOKENS)))
    return cache_bytes(cache) // STEP_TOKENS


class LetterTokenizer:
    """One token for each of 256 letters; the end token never comes from text."""

    name = "letters"
    chat_format = ChatFormat((START_ID,), (), (), (), (), stop_ids=frozenset({END_ID}))
    control_ids = frozenset({END_ID, START_ID})

    def encode(self, text: str) -> tuple[int, ...]:
        return tuple(ord(letter) - FIRST_LETTER for letter in text)

    def decode(self, token_ids: Sequence[int]) -> str:
        return "".join(chr(FIRST_LETTER + i) for i in token_ids if i < END_ID)


class ByteTokenizer:
    """One token for each byte, with the fewest control tokens that a chat can do with."""

    name = "bytes"
    chat_format = ChatFormat((START_ID,), (10,), (10,), (10,), (10,), frozenset({END_ID}))
    control_ids = frozenset({END_ID, START_ID})

    def encode(self, text: str) -> tuple[int, ...]:
        return tuple(text.encode())

    def decode(self, token_ids: Sequence[int]) -> str:
        return bytes(i for i in token_ids if i < END_ID).decode(errors="replace")


def tiny_model(*, seed: int = 0, dtype: str = "float32", window_tokens: int = 512) -> Any:
    """A LlamaForCausalLM with random weights, large enough to give varied replies."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=258,
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=window_tokens,
        initializer_range=0.2,
        tie_word_embeddings=False,
        bos_token_id=START_ID,
        eos_token_id=END_ID,
        pad_token_id=END_ID,
        attn_implementation="sdpa",
    )
    state = torch.random.get_rng_state()
    torch.manual_seed(seed)
    model = LlamaForCausalLM(config).to(getattr(torch, dtype)).eval()
    torch.random.set_rng_state(state)
    return model


def tiny_engine(
    model: Any,
    *,
    window_tokens: int = 512,
    piece_tokens: int = 16,
    store: Any = None,
    kv_cache_bytes: int = 0,
    cache: CacheKind = "16bit",
) -> TransformersEngine:
    """The real engine around a tiny model."""
    figures = figures_of(model.config.to_dict())
    loaded = LoadedModel(
        model=model,
        files=ModelFiles("tiny", "folder", Path("tiny")),
        figures=figures,
        plan=make_plan(figures, 1 << 30, PlanRequest(window_tokens=window_tokens, cache=cache)),
        device="cpu",
        dtype="float32",
        kv_cache_bytes=kv_cache_bytes,
        window_tokens=window_tokens,
        piece_tokens=piece_tokens,
        end_ids=(END_ID,),
    )
    return TransformersEngine(loaded, LetterTokenizer(), store)


def finished(events: Iterator[EngineEvent]) -> Finished:
    """The last event, which says how the reply ended."""
    last = list(events)[-1]
    assert isinstance(last, Finished)
    return last


def reply(engine: TransformersEngine, prompt: tuple[int, ...] = PROMPT, **params: Any) -> Finished:
    """A whole greedy reply of at most 40 tokens, unless `params` say otherwise."""
    return finished(engine.generate(prompt, SamplingParams(**{"max_tokens": 40, **params})))
