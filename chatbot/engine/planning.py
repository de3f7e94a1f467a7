"""What fits before anything is loaded: the plan of the command line, as data.

Knows names and settings; the arithmetic is in `memory`, and no weights are read.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from chatbot.engine.cache_folder import gib
from chatbot.engine.device_memory import (
    Memory,
    cpu_memory,
    cuda_memory,
    has_fast_bfloat16,
    has_fast_int8,
    parse_bytes,
)
from chatbot.engine.known_models import KNOWN_CONFIGS
from chatbot.engine.kv_policy import cache_bound, cache_kinds, can_be_packed, packable_kinds
from chatbot.engine.memory import (
    CACHES,
    DEFAULT_WINDOW_TOKENS,
    WEIGHTS,
    MemoryPlan,
    PlanRequest,
    Weights,
    kv_bytes_per_token,
    make_plan,
    weights_bytes,
)
from chatbot.engine.model_figures import ModelFigures, figures_of
from chatbot.engine.models import read_config
from chatbot.engine.window import checked_window
from chatbot.settings import Settings


def plan_command(settings: Settings, device_memory: str | None = None) -> dict[str, Any]:
    """What the configured model would take, for `python -m chatbot plan`.

    `device_memory` such as "12GiB" stands for a CUDA device of that size, or for the machine's
    memory with `device` set to cpu; None measures what is free now. Raises InputError and
    ModelError with one sentence.
    """
    known = read_config(settings.model, cache_dir=settings.cache_dir)
    figures = figures_of(known.config)
    memory, on_cuda, measured = _memory(settings, device_memory)
    request = PlanRequest(
        weights=chosen_weights(settings, on_cuda=on_cuda),
        window_tokens=checked_window(settings, figures),
        piece_tokens=settings.prefill_piece_tokens,
        on_cuda=on_cuda,
        caches=packable_kinds(cache_kinds(settings), figures.head_dim),
        replies_at_once=settings.max_concurrent_replies,
    )
    report = plan_report(figures, memory.available_bytes, request)
    report["advice"] += _bound_advice(figures, memory.available_bytes, request, settings)
    return {
        "model": settings.model,
        "source": known.source,
        "device": "cuda" if on_cuda else "cpu",
        "device_memory_bytes": memory.total_bytes,
        "memory_measured": measured,
        **report,
    }


def best_plan(figures: ModelFigures, available_bytes: int, request: PlanRequest) -> MemoryPlan:
    """The plan that a model is loaded by.

    The first kind of cache that leaves the wanted window whole, or else the one with the longest
    window; 32-bit numbers where those are faster and fit.
    """
    kinds = request.caches or (request.cache,)
    plans = [_typed_plan(figures, available_bytes, replace(request, cache=c)) for c in kinds]
    wanted = _wanted_window(figures, request)
    whole = (plan for plan in plans if plan.fits and plan.window_tokens >= wanted)
    return next(whole, max(plans, key=lambda plan: (plan.fits, plan.largest_window_tokens)))


def _typed_plan(figures: ModelFigures, available_bytes: int, request: PlanRequest) -> MemoryPlan:
    if not request.on_cuda and request.weights != "int4" and not has_fast_bfloat16():
        wide = make_plan(figures, available_bytes, replace(request, value_bytes=4))
        if wide.fits and wide.window_tokens >= _wanted_window(figures, request):
            return wide
    return make_plan(figures, available_bytes, request)


def plan_report(
    figures: ModelFigures, available_bytes: int, request: PlanRequest
) -> dict[str, Any]:
    """All figures of a plan, and the alternatives. Pure; sizes in bytes and tokens."""
    chosen = best_plan(figures, available_bytes, request)
    options = [
        make_plan(figures, available_bytes, replace(request, weights=weights, cache=cache))
        for weights in WEIGHTS
        for cache in CACHES
    ]
    return {
        "available_bytes": available_bytes,
        "parameters": figures.parameters,
        "trained_window_tokens": figures.window_tokens,
        "weights_bytes": {
            kind: weights_bytes(figures, kind, on_cuda=request.on_cuda) for kind in WEIGHTS
        },
        "kv_bytes_per_token": {kind: kv_bytes_per_token(figures, kind) for kind in CACHES},
        "fits": chosen.fits,
        "missing_bytes": chosen.missing_bytes,
        "chosen": _plan_dict(chosen),
        "options": [_plan_dict(option) for option in options],
        "advice": advice(figures, chosen, request),
    }


def advice(figures: ModelFigures, plan: MemoryPlan, request: PlanRequest) -> list[str]:
    """What to do, best first; empty when the plan fits with the whole wanted window."""
    if refused := too_many_replies(figures, plan, request):
        return [refused]
    if plan.fits:
        if plan.window_tokens >= _wanted_window(figures, request):
            return []
        return [f"The window is cut to {plan.window_tokens} tokens, the most that fits."]
    found = []
    if plan.largest_window_tokens:
        found.append(f"Choose --window-tokens {plan.largest_window_tokens} or less.")
    # Without a cache ("none") there is no smaller one.
    smaller_caches = CACHES[CACHES.index(plan.cache) + 1 :] if plan.cache in CACHES else ()
    for cache in smaller_caches:
        if cache == "int4" and not can_be_packed(figures.head_dim):
            continue
        if make_plan(figures, plan.available_bytes, replace(request, cache=cache)).fits:
            found.append(f"Choose --kv-cache-dtype {cache}.")
            break
    for weights in WEIGHTS[WEIGHTS.index(plan.weights) + 1 :]:
        other = make_plan(figures, plan.available_bytes, replace(request, weights=weights))
        if other.fits:
            found.append(
                f"Choose --quantization {weights}: it takes {gib(other.total_bytes)} with a "
                f"window of {other.window_tokens} tokens."
            )
    if smaller := _smaller_model(figures, plan, request):
        found.append(smaller)
    return found or ["Choose a model with fewer parameters; not even 4-bit weights fit."]


def _bound_advice(
    figures: ModelFigures, available_bytes: int, request: PlanRequest, settings: Settings
) -> list[str]:
    """Says when the bound on all caches cuts the window. Raises SettingsError for a useless one."""
    plan = best_plan(figures, available_bytes, request)
    if not plan.fits:
        return []
    bound = cache_bound(plan, settings.kv_cache_bytes, plan.kv_bytes_per_token)
    if bound.window_tokens >= plan.window_tokens:
        return []
    return [
        f"The window is cut to {bound.window_tokens} tokens, since kv_cache_bytes holds no more."
    ]


def too_many_replies(figures: ModelFigures, plan: MemoryPlan, request: PlanRequest) -> str | None:
    """Why so many replies at once are refused; None when they are not.

    One reply may have a window cut to what fits, but nobody asked for several short ones.
    """
    wanted, asked = _wanted_window(figures, request), plan.replies_at_once
    if asked == 1 or plan.window_tokens >= wanted:
        return None
    plans = (
        best_plan(figures, plan.available_bytes, replace(request, replies_at_once=n))
        for n in range(asked - 1, 0, -1)
    )
    fitting = next((p.replies_at_once for p in plans if p.window_tokens >= wanted), 1)
    whole = replace(plan, window_tokens=wanted)
    return (
        f"{asked} replies at once, each with a window of {wanted} tokens, take "
        f"{gib(whole.total_bytes)} and {gib(plan.available_bytes)} are free; choose "
        f"--max-concurrent-replies {fitting} or --window-tokens {plan.window_tokens}."
    )


def _wanted_window(figures: ModelFigures, request: PlanRequest) -> int:
    return request.window_tokens or min(DEFAULT_WINDOW_TOKENS, figures.window_tokens)


def _memory(settings: Settings, given: str | None) -> tuple[Memory, bool, bool]:
    """Memory, whether it is a CUDA device's, and whether it was measured."""
    if given is not None:
        n_bytes = parse_bytes(given)
        return Memory(n_bytes, n_bytes), settings.device != "cpu", False
    found = None if settings.device == "cpu" else cuda_memory()
    if found is not None:
        return found, True, True
    return cpu_memory(), settings.device == "cuda", True


def chosen_weights(settings: Settings, *, on_cuda: bool) -> Weights:
    """What "auto" means: 8 bit where it is fast, which on a CPU depends on the processor."""
    if settings.quantization != "auto":
        return settings.quantization
    if on_cuda:
        return "none" if settings.model == "demo" else "int8"
    return "int8" if has_fast_int8() else "none"


def _plan_dict(plan: MemoryPlan) -> dict[str, Any]:
    return {
        "quantization": plan.weights,
        "cache": plan.cache,
        "value_bytes": plan.value_bytes,
        "window_tokens": plan.window_tokens,
        "weights_bytes": plan.weights_bytes,
        "kv_bytes_per_token": plan.kv_bytes_per_token,
        "kv_bytes": plan.kv_bytes,
        "working_bytes": plan.working_bytes,
        "reserve_bytes": plan.reserve_bytes,
        "total_bytes": plan.total_bytes,
        "fits": plan.fits,
        "missing_bytes": plan.missing_bytes,
        "largest_window_tokens": plan.largest_window_tokens,
        "max_concurrent_replies": plan.replies_at_once,
    }


def _smaller_model(figures: ModelFigures, plan: MemoryPlan, request: PlanRequest) -> str | None:
    """The largest model of the built-in table that fits with the same settings.

    One of the same family if there is one, else any.
    """
    fitting = []
    for name, config in KNOWN_CONFIGS.items():
        other = figures_of(config)
        if name == "demo" or other.parameters >= figures.parameters:
            continue
        window = min(request.window_tokens, other.window_tokens)
        if make_plan(other, plan.available_bytes, replace(request, window_tokens=window)).fits:
            fitting.append((other.family == figures.family, other.parameters, name))
    return f"Choose a smaller model such as {max(fitting)[2]}." if fitting else None
