"""Errors in OpenAI's shape, and which of ours is which. Knows no route."""

from __future__ import annotations

import math
from typing import Any

from chatbot.busy import BEING_ANSWERED, BEING_CHANGED
from chatbot.errors import (
    BudgetError,
    ChatbotError,
    ConnectionLostError,
    EngineBusyError,
    EngineError,
    IdTakenError,
    InputError,
    NoAnswerError,
    OutOfMemoryError,
    PromptTooLongError,
    RemoteError,
    ServerBusyError,
    StoreError,
    TokenizerError,
    WrongKeyError,
)
from chatbot.messages import Turn
from chatbot.records import storable
from chatbot.store_place import PLACE
from retrieval.types import LoadError, RetrievalError

RETRY_S = 5.0
"""When it may be tried again, where nobody knows better."""
STORE_AWAY = "The conversations cannot be reached just now; try again in a moment."
DOCUMENTS_AWAY = "The documents cannot be reached just now; try again in a moment."
# Other sentences name the server's address, and may hold a part of its key.
_SENTENCES = {
    WrongKeyError.kind: "The model's server does not let this server in; tell who runs it.",
    RemoteError.kind: "The model's server refused the request; tell who runs this server.",
    NoAnswerError.kind: "The model's server does not answer; try again in a moment.",
    ConnectionLostError.kind: "The model's server broke off in the middle; ask again.",
}
_MAY_GO_LATER = (
    NoAnswerError.kind,
    ConnectionLostError.kind,
    ServerBusyError.kind,
    EngineBusyError.kind,
    OutOfMemoryError.kind,
)


class ApiError(Exception):
    """An answer with an error. `param` names the field at fault, `code` the reason for programs."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        code: str | None = None,
        param: str | None = None,
        retry_after_s: float | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.code = code
        self.param = param
        self.retry_after_s = retry_after_s

    @classmethod
    def too_many(cls, message: str, code: str, wait_s: float) -> ApiError:
        """A limit is reached; it may be tried again in `wait_s`."""
        return cls(429, message, code=code, retry_after_s=wait_s)

    @property
    def record(self) -> dict[str, Any]:
        """The body of the answer."""
        error = {
            "message": storable(self.message),
            "type": _type(self.status, self.code),
            "param": self.param,
            "code": self.code,
        }
        return {"error": error}

    @property
    def headers(self) -> dict[str, str]:
        headers = {"WWW-Authenticate": "Bearer"} if self.status == 401 else {}
        if self.retry_after_s is not None:
            headers["Retry-After"] = str(max(math.ceil(self.retry_after_s), 1))
        return headers


def bad(message: str, param: str | None = None, code: str | None = "invalid_value") -> ApiError:
    """What was sent is wrong."""
    return ApiError(400, message, param=param, code=code)


def api_error(error: ChatbotError | RetrievalError) -> ApiError:
    """One of our errors as an answer. What lies behind this server, its addresses, paths and
    keys, is nothing for those who ask it."""
    sentence = str(error)
    if sentence in (BEING_ANSWERED, BEING_CHANGED):
        return ApiError(409, sentence, code="conversation_busy", retry_after_s=1.0)
    if isinstance(error, IdTakenError):
        return ApiError(409, sentence, code="conversation_id_taken")
    if isinstance(error, BudgetError):
        return bad(sentence, "messages", "context_length_exceeded")
    if isinstance(error, TokenizerError):  # The model's server does not count.
        return _failed(NoAnswerError.kind, sentence)
    if isinstance(error, InputError | LoadError):
        return bad(sentence)
    if isinstance(error, StoreError):
        names_place = sentence.startswith(PLACE)
        said = STORE_AWAY if names_place else sentence
        return ApiError(503, said, code="store_unavailable", retry_after_s=RETRY_S)
    if isinstance(error, RetrievalError):
        return ApiError(503, DOCUMENTS_AWAY, code="documents_unavailable", retry_after_s=RETRY_S)
    if isinstance(error, EngineError):
        wish_s = error.retry_after_s if isinstance(error, ServerBusyError) else None
        return _failed(error.kind, sentence, wish_s)
    return ApiError(500, sentence, code="server_error")


def turn_error(turn: Turn) -> ApiError | None:
    """The error of a reply that failed; None for one that did not, or of which there is a part
    that memory cut off."""
    if turn.finish not in ("error", "memory") or (turn.finish == "memory" and turn.reply):
        return None
    failed = [n for n in turn.notices if n.code in ("reply_failed", "out_of_memory")]
    if not failed:
        return _failed(EngineError.kind, "The reply failed; ask again.")
    kind = OutOfMemoryError.kind if turn.finish == "memory" else failed[-1].values.get("kind", "")
    return _failed(kind, failed[-1].text, failed[-1].values.get("retry_after_s"))


def _failed(kind: str, sentence: str, wish_s: float | None = None) -> ApiError:
    """A reply that failed: what may go a little later is 503, what somebody must put right 502."""
    if kind == PromptTooLongError.kind:
        return bad(sentence, "messages", kind)
    if kind in _SENTENCES:
        sentence = _SENTENCES[kind]
    if kind in (RemoteError.kind, WrongKeyError.kind):
        return ApiError(502, sentence, code=RemoteError.kind)
    if kind in _MAY_GO_LATER:
        wait_s = RETRY_S if wish_s is None else wish_s
        return ApiError(503, sentence, code=kind, retry_after_s=wait_s)
    return ApiError(500, sentence, code=EngineError.kind)


def _type(status: int, code: str | None) -> str:
    if code == "insufficient_quota":
        return "insufficient_quota"
    if status == 401:
        return "authentication_error"
    if status == 403:
        return "permission_error"
    if status == 429:
        return "rate_limit_error"
    return "invalid_request_error" if status < 500 else "server_error"
