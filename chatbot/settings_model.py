"""The settings of the model and its memory; `chatbot.settings` joins all of them."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ByteSize, ConfigDict, Field


class ModelSettings(BaseModel):
    """Which model replies, where it runs and how its caches are kept."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    model: str = Field(
        "demo",
        description="demo (embedded small English model), a hub name, a local folder or a "
        "GGUF file",
    )
    quantization: Literal["auto", "none", "int8", "int4"] = Field(
        "auto",
        description="weights; auto: int8 on CUDA and on a CPU that is fast at it, none on others",
    )
    device: Literal["auto", "cpu", "cuda"] = Field("auto", description="where the model runs")
    threads: int = Field(0, ge=0, le=256, description="CPU threads; 0 lets the library choose")
    window_tokens: int = Field(
        0,
        ge=0,
        le=1_000_000,
        description="longest prompt and reply together; 0: as much as the model and memory allow, "
        "at most 8192 (demo: 2048, since a longer one is slow on a CPU)",
    )
    prefill_piece_tokens: int = Field(
        512, ge=16, le=8192, description="prompt tokens read in one forward pass"
    )
    attention: Literal["auto", "flash", "sdpa", "eager"] = Field(
        "auto", description="how attention is computed; auto: the best that is there"
    )
    kv_cache_bytes: ByteSize = Field(
        ByteSize(0), description="bound of all chats' caches, such as 2GiB; 0: computed"
    )
    kv_cache_dtype: Literal["auto", "16bit", "int8", "int4"] = Field(
        "auto", description="how caches are kept; auto: in few bits if it must be"
    )
    kv_cache: Literal["auto", "none"] = Field(
        "auto",
        description="none makes replies without any cache, each token reading all of the prompt "
        "again: very slowly, without the cache's memory",
    )
    kv_eviction: Literal["sink", "none"] = Field(
        "sink",
        description="a reply that outgrows its cache: sink goes on with the first and the latest "
        "tokens, none refuses it",
    )
    kv_prompt_eviction: Literal["none", "snapkv"] = Field(
        "none", description="snapkv keeps of a long prompt what its end attends to most"
    )
    kv_prompt_keep_tokens: int = Field(
        1024, ge=64, le=1_000_000, description="tokens of a prompt that snapkv keeps"
    )
    kv_idle: Literal["keep", "int8", "cpu"] = Field(
        "keep",
        description="caches of other chats meanwhile: kept as they are, in 8 bit (no longer bit "
        "for bit those of a fresh start), or moved from the device to the CPU's memory",
    )
    self_consistency_samples: int = Field(
        1,
        ge=1,
        le=16,
        description="with kv_cache none, settle short answers by the majority of so many samples",
    )
    max_concurrent_replies: int = Field(
        1,
        ge=1,
        le=64,
        description="replies that are made at once, each with a whole window of cache; the "
        "others wait in line",
    )
    tokenizer: str | None = Field(
        None,
        description="count with this tokenizer instead of the model's (context command, and chats "
        "with --engine-url): a Hugging Face folder, a tokenizer.json, or Llama 3's tokenizer.model",
    )
