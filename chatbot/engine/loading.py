"""Loads a model into memory after checking that it fits; knows nothing of prompts or replies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from chatbot.engine.base import EngineInfo
from chatbot.engine.cache_folder import Progress, gib
from chatbot.engine.device_memory import device_memory
from chatbot.engine.kv_policy import (
    CachePolicy,
    cache_bound,
    cache_kinds,
    cache_policy,
    packable_kinds,
)
from chatbot.engine.memory import MemoryPlan, PlanRequest, kv_bytes_per_token
from chatbot.engine.model_figures import ModelFigures, figures_of
from chatbot.engine.models import ModelFiles, locate, read_config
from chatbot.engine.planning import advice, best_plan, chosen_weights, too_many_replies
from chatbot.engine.process_memory import share_one_arena
from chatbot.engine.window import checked_window
from chatbot.errors import ModelError, SettingsError
from chatbot.settings import Settings


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """A model in memory, and how it is to be run."""

    model: Any
    files: ModelFiles
    figures: ModelFigures
    plan: MemoryPlan
    device: str
    dtype: str
    window_tokens: int
    piece_tokens: int
    end_ids: tuple[int, ...]
    kv_cache_bytes: int = 0
    """What the settings allow for all caches together; 0 is computed."""
    cache_policy: CachePolicy = field(default_factory=CachePolicy)
    with_cache: bool = True
    """False: replies are made without any cache."""
    samples: int = 1
    """Without a cache, short answers are settled by the majority of so many samples."""
    replies_at_once: int = 1

    @property
    def kv_bytes_per_token(self) -> int:
        """Bytes that a token takes in the cache, in the model's own type."""
        return kv_bytes_per_token(self.figures, self.plan.cache)


def load_files(settings: Settings, report: Progress) -> tuple[ModelFiles, MemoryPlan]:
    """Plan on the configuration alone, then get the files. Raises ModelError, SettingsError."""
    known = read_config(settings.model, cache_dir=settings.cache_dir)
    check_architecture(settings.model, known.config)
    plan = checked_plan(settings, figures_of(known.config))
    files = locate(settings.model, cache_dir=settings.cache_dir, progress=report)
    return files, plan


def load_model(
    settings: Settings, files: ModelFiles, plan: MemoryPlan, report: Progress
) -> LoadedModel:
    """Read the weights. Raises ModelError with one sentence."""
    import torch
    from transformers.utils import logging as library_logging

    from chatbot.engine.kernels import choose_kernels
    from chatbot.engine.read_weights import read_weights

    library_logging.disable_progress_bar()
    share_one_arena()
    if settings.threads:
        torch.set_num_threads(settings.threads)
    on_cuda = chosen_device(settings) == "cuda"
    report(f"Reading the weights of {files.name} ({gib(plan.weights_bytes)}).", None)
    model = read_weights(files, plan, attention=settings.attention, on_cuda=on_cuda)
    choose_kernels(model, name=files.name, folder=settings.cache_dir)
    figures = figures_of(model.config.to_dict())
    bound = cache_bound(plan, settings.kv_cache_bytes, plan.kv_bytes_per_token)
    if bound.window_tokens < plan.window_tokens:
        report(
            f"The window is {bound.window_tokens} tokens instead of {plan.window_tokens}, since "
            "kv_cache_bytes holds no more.",
            None,
        )
    return LoadedModel(
        model=model,
        files=files,
        figures=figures,
        plan=plan,
        device=model.device.type,
        dtype=str(model.dtype).removeprefix("torch."),
        window_tokens=bound.window_tokens,
        piece_tokens=settings.prefill_piece_tokens,
        end_ids=_end_ids(model),
        kv_cache_bytes=settings.kv_cache_bytes,
        cache_policy=cache_policy(settings),
        with_cache=settings.kv_cache != "none",
        samples=settings.self_consistency_samples,
        replies_at_once=settings.max_concurrent_replies,
    )


def info_of(loaded: LoadedModel) -> EngineInfo:
    """What the engine around a loaded model says of itself."""
    return EngineInfo(
        model=loaded.files.name,
        max_window_tokens=loaded.window_tokens,
        device=loaded.device,
        dtype=loaded.dtype,
        quantization=loaded.plan.weights,
        is_demo=loaded.files.is_demo,
        keeps_cache=loaded.with_cache,
        replies_outgrow=loaded.with_cache and loaded.cache_policy.in_reply == "sink",
        details={
            "trained_window_tokens": loaded.figures.window_tokens,
            "parameters": loaded.figures.parameters,
            "weights_bytes": loaded.plan.weights_bytes,
            "kv_bytes_per_token": loaded.kv_bytes_per_token,
            "kv_cache_dtype": loaded.plan.cache if loaded.with_cache else "none",
            "attention": str(loaded.model.config._attn_implementation),
            "direct_caches": list(getattr(loaded.model, "direct_caches", ())),
            "one_token_step": getattr(loaded.model, "one_token", None) is not None,
            "prefill_piece_tokens": loaded.piece_tokens,
            "kv_eviction": loaded.cache_policy.in_reply,
            "kv_prompt_eviction": loaded.cache_policy.in_prompt,
            "kv_idle": loaded.cache_policy.idle,
            "max_concurrent_replies": loaded.replies_at_once,
        },
    )


def chosen_device(settings: Settings) -> str:
    """ "cuda" or "cpu". Raises ModelError when CUDA was asked for and is not there."""
    import torch

    there = torch.cuda.is_available()
    if settings.device == "cuda" and not there:
        message = (
            "No CUDA device can be used; install a CUDA build of torch and a driver, or choose "
            "--device cpu."
        )
        raise ModelError(message)
    return "cuda" if there and settings.device != "cpu" else "cpu"


def request_of(settings: Settings, figures: ModelFigures, *, device: str) -> PlanRequest:
    """The settings as the arithmetic wants them.

    Raises SettingsError for too long a window, and for a cache that the model cannot have.
    """
    return PlanRequest(
        weights=chosen_weights(settings, on_cuda=device == "cuda"),
        window_tokens=checked_window(settings, figures),
        piece_tokens=settings.prefill_piece_tokens,
        on_cuda=device == "cuda",
        caches=packable_kinds(cache_kinds(settings), figures.head_dim),
        replies_at_once=settings.max_concurrent_replies,
    )


def checked_plan(settings: Settings, figures: ModelFigures) -> MemoryPlan:
    """The plan against the memory that is free now.

    Raises ModelError when it does not fit, and SettingsError for a useless bound on the cache.
    """
    device = chosen_device(settings)
    request = request_of(settings, figures, device=device)
    available = device_memory(on_cuda=request.on_cuda).available_bytes
    plan = best_plan(figures, available, request)
    if not plan.fits:
        raise ModelError(does_not_fit(settings.model, plan, figures, request))
    if sentence := too_many_replies(figures, plan, request):
        raise SettingsError(sentence)
    cache_bound(plan, settings.kv_cache_bytes, plan.kv_bytes_per_token)
    return plan


def does_not_fit(name: str, plan: MemoryPlan, figures: ModelFigures, request: PlanRequest) -> str:
    """One sentence: what is needed, what is there, and what to do."""
    place = "on the CUDA device" if request.on_cuda else "in memory"
    return (
        f"{name} does not fit: with a window of {plan.window_tokens} tokens it takes "
        f"{gib(plan.total_bytes)} and {gib(plan.available_bytes)} are free {place}. "
        f"{advice(figures, plan, request)[0]}"
    )


def check_architecture(name: str, config: Mapping[str, Any]) -> None:
    """Raise ModelError unless the model library has a text model for this configuration."""
    from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES as KNOWN

    kind = str(config.get("model_type", ""))
    classes = config.get("architectures") or []
    writes_text = not classes or any("CausalLM" in c or "LMHead" in c for c in classes)
    if kind not in KNOWN or not writes_text:
        what = classes[0] if classes and not writes_text else kind or "unknown"
        message = (
            f"{name} has the architecture {what}, which cannot be used for chat here; choose a "
            "text model such as Llama, Qwen2 or Mistral."
        )
        raise ModelError(message)


def _end_ids(model: Any) -> tuple[int, ...]:
    named = model.generation_config.eos_token_id
    if named is None:
        named = model.config.eos_token_id
    return (named,) if isinstance(named, int) else tuple(named or ())
