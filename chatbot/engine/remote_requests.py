"""One prompt as the fields of a request, for each way to send it and each kind of server. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from chatbot.engine.base import ChatTokenizer, SamplingParams
from chatbot.engine.remote_server import ServerKind
from chatbot.engine.remote_tokenizer import control_texts, prompt_messages, prompt_text

Sends = Literal["token ids", "text", "messages"]
MAX_STOPS = 4
"""OpenAI's limit; what is more is found on our side."""


@dataclass(frozen=True, slots=True)
class Way:
    """How prompts reach a server, and how they are counted."""

    sends: Sends
    tokenizer: ChatTokenizer
    counted_by: str
    """For people: whose tokenizer counts."""
    estimated: bool = False
    drops_begin: bool = False
    """The server puts the begin token before a text by itself."""

    @property
    def is_chat(self) -> bool:
        return self.sends == "messages"

    @property
    def end_texts(self) -> tuple[str, ...]:
        """How the ends of a reply look, should a server write them out."""
        if self.is_chat:
            return ()
        ends = self.tokenizer.chat_format.stop_ids
        return tuple(text for text, id_ in control_texts(self.tokenizer).items() if id_ in ends)


def prompt_fields(way: Way, prompt_ids: Sequence[int]) -> dict[str, Any]:
    """The prompt as a server takes it."""
    if way.sends == "token ids":
        return {"prompt": list(prompt_ids)}
    if way.sends == "messages":
        return {"messages": prompt_messages(prompt_ids)}
    return {"prompt": prompt_text(prompt_ids[1:] if way.drops_begin else prompt_ids)}


def request_fields(
    way: Way, kind: ServerKind, prompt_ids: Sequence[int], params: SamplingParams
) -> dict[str, Any]:
    """All fields but those of a stream. What only some servers know is in `extra_body`."""
    length = "max_completion_tokens" if kind == "OpenAI" and way.is_chat else "max_tokens"
    fields = prompt_fields(way, prompt_ids) | {
        length: params.max_tokens,
        "temperature": params.temperature,
    }
    if params.temperature > 0:
        fields["top_p"] = max(params.top_p, 1e-6)  # servers refuse 0, which means: the likeliest
    if params.seed is not None:
        fields["seed"] = params.seed
    if params.stop:
        fields["stop"] = list(params.stop[:MAX_STOPS])
    extra = _extra(way, kind, params)
    return fields | ({"extra_body": extra} if extra else {})


def _extra(way: Way, kind: ServerKind, params: SamplingParams) -> dict[str, Any]:
    """A penalty on repetition goes only where it does not count a long prompt's tokens, too."""
    extra: dict[str, Any] = {}
    if kind in ("llama.cpp", "llama-cpp-python"):
        extra["repeat_penalty"] = params.repetition_penalty
    if kind in ("vLLM", "SGLang") and way.sends == "token ids":
        extra["stop_token_ids"] = sorted(way.tokenizer.chat_format.stop_ids)
    if kind == "vLLM" and way.sends == "token ids":
        extra["return_token_ids"] = True
    return extra
