"""What goes wrong at a server, told apart and put into sentences; sends nothing itself."""

from __future__ import annotations

import re

import openai

from chatbot.engine.remote_proxy import proxy_hint
from chatbot.engine.remote_words import fields_of, shown, words_of
from chatbot.errors import (
    ConnectionLostError,
    NoAnswerError,
    PromptTooLongError,
    RemoteError,
    ServerBusyError,
    UnknownModelError,
    WrongKeyError,
)

LEAST_CONTEXT_TOKENS, MOST_CONTEXT_TOKENS = 64, 1 << 30
"""What is beyond is no context of any model; see `is_context`."""
# How servers say that prompt and reply are too long, with their limit where they name it: OpenAI
# and vLLM, llama-cpp-python, llama.cpp, SGLang, Text Generation Inference.
_TOO_LONG = re.compile(
    r"context[ _-]length|context[ _-]window|context[ _-]size|maximum allowed length|"
    r"max_new_tokens`? must be <=|must have (?:less|fewer) than \d+ tokens|longer than the model|"
    r"too many tokens|(?:input|prompt) is too long",
    re.IGNORECASE,
)
_LIMITS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"maximum context length (?:is|of) (\d+)",
        r"context (?:window|length|size) (?:of|is|\()\s*(\d+)",
        r"model's context length \((\d+)",
        r"maximum allowed length \((\d+)",
        r"must be <= (\d+)",
        r"must have (?:less|fewer) than (\d+) tokens",
    )
)
_NO_MODEL = re.compile(
    r"model.{0,200}(not found|does not exist|not exist|unknown|pinned|is not a valid)|"
    r"(not found|unknown|pinned).{0,40}model",
    re.IGNORECASE | re.DOTALL,
)
_OF_PROXIES = (407, 502, 503, 504)
"""What a proxy answers that does not reach the server, or does not know us."""
_NO_MONEY = ("insufficient_quota", "billing_not_active", "billing_hard_limit_reached")


def typed(
    error: BaseException, *, server: str, model: str, began: bool = False, text_came: bool = False
) -> RemoteError:
    """The error of ours for what the client raised. `began`: the server had begun to answer;
    `text_came`: and text of the reply had come."""
    if isinstance(error, RemoteError):
        return error
    if isinstance(error, openai.APITimeoutError):
        return late(server)
    if isinstance(error, openai.APIStatusError):
        return _of_status(error, server, model)
    if isinstance(error, openai.APIConnectionError) or not isinstance(error, openai.APIError):
        return lost(server, text_came=text_came) if began else unreachable(server, error)
    message = _message(error)
    too_long = _too_long(message, error.body)
    if too_long is not None:
        return too_long
    return ServerBusyError(f"The server {server} failed during the reply ({message}); ask again.")


def late(server: str) -> NoAnswerError:
    """The sentence for a server that takes a question and says nothing."""
    return NoAnswerError(
        f"The server {server} did not answer in time; look whether it still works, or raise "
        f"engine_timeout_s.{proxy_hint(server)}"
    )


def lost(server: str, *, text_came: bool = True) -> ConnectionLostError:
    """The sentence for a reply that broke off."""
    if not text_came:
        return ConnectionLostError(
            f"The connection to {server} was lost before the first word of the reply; ask again "
            "when the server is back."
        )
    return ConnectionLostError(
        f"The connection to {server} was lost in the middle of the reply; what had come of it is "
        "kept. Ask again when the server is back."
    )


def no_stream(server: str, kind: str) -> RemoteError:
    """The sentence for an answer that is something else; `kind` says what."""
    return RemoteError(
        f"The server {server} sent no stream of a reply ({kind}); look what answers there, or "
        "correct --engine-url."
    )


def wordless(server: str) -> RemoteError:
    """The sentence for an answer that ended in order with nothing in it."""
    return RemoteError(
        f"The server {server} ended its answer without a word of a reply; look whether it still "
        "works, then ask again."
    )


def silent(server: str, silence_s: float) -> NoAnswerError:
    """The sentence for a server that holds a connection and says nothing."""
    return NoAnswerError(
        f"The server {server} holds the connection but sent no word of a reply for {silence_s:g} "
        "seconds; look whether it still works, or raise engine_timeout_s."
    )


def endless(server: str, limit_s: float) -> NoAnswerError:
    """The sentence for an answer that comes byte by byte."""
    return NoAnswerError(
        f"What the server {server} answers had no end after {limit_s:g} seconds; look whether it "
        "still works, or correct --engine-url."
    )


def unreachable(server: str, error: BaseException | None = None) -> NoAnswerError:
    """The sentence for an address where nobody answers."""
    cause = error.__cause__ if error is not None else None
    reason = f" ({shown(str(cause))})" if cause is not None and str(cause) else ""
    return NoAnswerError(
        f"No server answers at {server}{reason}; start it, or correct --engine-url."
        f"{proxy_hint(server)}"
    )


def is_worth_another_try(error: RemoteError) -> bool:
    """Whether the same request may succeed a little later."""
    return isinstance(error, ServerBusyError | NoAnswerError | ConnectionLostError)


def is_context(tokens: int) -> bool:
    """Whether a context can be so long."""
    return LEAST_CONTEXT_TOKENS <= tokens <= MOST_CONTEXT_TOKENS


def _of_status(error: openai.APIStatusError, server: str, model: str) -> RemoteError:
    status, message = error.status_code, _message(error)
    by_proxy = proxy_hint(server) if status in _OF_PROXIES else ""
    if status in (401, 403):
        return WrongKeyError(
            f"The server {server} does not take the key ({message}); set CHATBOT_API_KEY or "
            "--api-key to one that it knows."
        )
    too_long = _too_long(message, error.body) if status in (400, 413, 422, 500) else None
    if too_long is not None:
        return too_long
    if status in (400, 404) and (_code(error) == "model_not_found" or _NO_MODEL.search(message)):
        return UnknownModelError(
            f"The server {server} does not have the model {model} ({message}); set --model to one "
            "that it lists."
        )
    if status == 429 and _code(error) in _NO_MONEY:
        return RemoteError(f"The account at {server} is used up ({message}); look at its billing.")
    if status in (408, 409, 425, 429) or status >= 500:
        what = "has too much to do" if status == 429 else f"has a fault (status {status})"
        return ServerBusyError(
            f"The server {server} {what}: {message}; ask again later.{by_proxy}",
            retry_after(error),
        )
    return RemoteError(
        f"The server {server} refused the request (status {status}): {message}.{by_proxy}"
    )


def retry_after(error: openai.APIStatusError) -> float | None:
    """Seconds that the server asks to wait, if it says so in seconds."""
    for header, scale in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        try:
            return max(0.0, float(error.response.headers[header]) / scale)
        except (KeyError, ValueError):
            continue
    return None


def _too_long(message: str, body: object) -> PromptTooLongError | None:
    fields = fields_of(body)
    if not _TOO_LONG.search(message) and fields.get("code") != "context_length_exceeded":
        return None
    limit = fields.get("n_ctx")
    found = next((m for pattern in _LIMITS if (m := pattern.search(message))), None)
    tokens = limit if isinstance(limit, int) else int(found[1]) if found else 0
    tokens = tokens if is_context(tokens) else 0
    return PromptTooLongError(
        f"Prompt and reply are too long for the server ({message}); ask a shorter question, or set "
        "window_tokens to what it takes.",
        tokens,
    )


def _code(error: openai.APIError) -> str:
    return str(error.code or fields_of(error.body).get("code") or fields_of(error.body).get("type"))


def _message(error: openai.APIError) -> str:
    return words_of(error.body) or shown(error.message or type(error).__name__)
