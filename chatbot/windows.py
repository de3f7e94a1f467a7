"""The window in use and how replies are drawn, from the settings. Pure; knows no conversation."""

from __future__ import annotations

from dataclasses import replace

from chatbot.engine.base import Engine, SamplingParams
from chatbot.messages import Notice
from chatbot.settings import Settings

DEMO_WINDOW_TOKENS = 2048
"""A small model on a CPU reads some 600 tokens a second: a longer window only makes it slow."""
MAX_WINDOW_TOKENS = 8192
LEAST_ROOM_TOKENS = 64
"""See `EngineInfo.replies_outgrow`."""
RETRY_TEMPERATURE, RETRY_TOP_P = 0.7, 0.9


def window_tokens(settings: Settings, engine: Engine) -> int:
    """The window in use: the setting, or what suits the model. Never above the model's own."""
    info = engine.info
    automatic = DEMO_WINDOW_TOKENS if info.is_demo else MAX_WINDOW_TOKENS
    return min(settings.window_tokens or automatic, info.max_window_tokens)


def window_notices(settings: Settings, engine: Engine) -> tuple[Notice, ...]:
    """Says when memory is so short that the window in use is smaller than it would be."""
    info = engine.info
    automatic = DEMO_WINDOW_TOKENS if info.is_demo else MAX_WINDOW_TOKENS
    usual = min(settings.window_tokens or automatic, info.full_window_tokens)
    window = min(usual, info.max_window_tokens)
    if window >= usual:
        return ()
    sentence = f"Memory is short, so the window is {window} tokens for now instead of {usual}."
    return (Notice("memory_window", sentence, {"tokens": window, "usual": usual}),)


def reply_tokens(wanted_tokens: int, engine: Engine, reserved_tokens: int) -> int:
    """Most tokens of a reply: what the window reserves for it, or all that is wanted where a reply
    may go on without its oldest tokens."""
    if engine.info.replies_outgrow and reserved_tokens >= LEAST_ROOM_TOKENS:
        return max(wanted_tokens, reserved_tokens)
    return reserved_tokens


def usual_sampling(settings: Settings) -> SamplingParams:
    """How tokens are drawn when nobody asks otherwise."""
    return SamplingParams(
        temperature=settings.temperature,
        top_p=settings.top_p,
        repetition_penalty=settings.repetition_penalty,
        seed=settings.seed,
        stop=settings.stop,
    )


def livelier(usual: SamplingParams) -> SamplingParams:
    """The same with some chance in it, where it has none."""
    if usual.temperature > 0:
        return usual
    return replace(usual, temperature=RETRY_TEMPERATURE, top_p=RETRY_TOP_P)
