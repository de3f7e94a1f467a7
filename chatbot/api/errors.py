"""Errors in OpenAI's shape, and which of ours is which. Knows no route."""

from __future__ import annotations

import math
from typing import Any

from chatbot.busy import BEING_ANSWERED, BEING_CHANGED
from chatbot.errors import BudgetError, ChatbotError, EngineError, InputError, StoreError
from chatbot.messages import Turn
from chatbot.records import storable
from retrieval.types import RetrievalError


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
    """One of our errors as an answer."""
    sentence = str(error)
    if sentence in (BEING_ANSWERED, BEING_CHANGED):
        return ApiError(409, sentence, code="conversation_busy", retry_after_s=1.0)
    if isinstance(error, BudgetError):
        return bad(sentence, "messages", "context_length_exceeded")
    if isinstance(error, InputError | RetrievalError):
        return bad(sentence)
    if isinstance(error, StoreError):
        return ApiError(503, sentence, code="store_unavailable", retry_after_s=5.0)
    if isinstance(error, EngineError):
        return ApiError(500, sentence, code="reply_failed")
    return ApiError(500, sentence, code="server_error")


def turn_error(turn: Turn) -> ApiError | None:
    """The error of a reply that failed; None for one that did not, or of which there is a part
    that memory cut off."""
    if turn.finish not in ("error", "memory") or (turn.finish == "memory" and turn.reply):
        return None
    failed = [n for n in turn.notices if n.code in ("reply_failed", "out_of_memory")]
    sentence = failed[-1].text if failed else "The reply failed; ask again."
    if turn.finish == "memory":
        return ApiError(503, sentence, code="out_of_memory", retry_after_s=5.0)
    return ApiError(500, sentence, code="reply_failed")


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
