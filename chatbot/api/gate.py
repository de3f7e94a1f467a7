"""Who asks, and whether they may: keys, limits, and the errors of a request. Knows no reply."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from chatbot.api.errors import ApiError, api_error, bad
from chatbot.api.keys import OPEN, Key, KeyFile
from chatbot.api.limits import Accounts
from chatbot.api.results import as_json
from chatbot.errors import ChatbotError, SettingsError
from retrieval.types import RetrievalError

JSON = "application/json"


class Gate:
    """Lets requests in by their keys."""

    def __init__(self, keys: KeyFile, accounts: Accounts) -> None:
        self._keys = keys
        self._accounts = accounts

    @property
    def needs_keys(self) -> bool:
        """Also True while the keys cannot be read."""
        try:
            return self._keys.is_needed
        except SettingsError:
            return True

    @contextmanager
    def request(self, request: Request, *, is_reply: bool = False) -> Iterator[Key]:
        """The key of a request, for as long as it is answered. Raises ApiError."""
        key = self.key_of(request.headers.get("authorization", ""))
        with self._accounts.request(key, is_reply=is_reply):
            yield key

    def key_of(self, authorization: str) -> Key:
        """The key of an Authorization header. Raises ApiError for one that is missing or wrong."""
        try:
            if not self._keys.is_needed:
                return OPEN
            scheme, _, given = authorization.partition(" ")
            found = self._keys.find(given.strip()) if scheme.lower() == "bearer" else None
        except SettingsError as error:
            # Its text names a path, which is nothing for strangers.
            sentence = "The keys of this server cannot be read; tell who runs it."
            raise ApiError(503, sentence, code="keys_unreadable") from error
        if found is None:
            sentence = (
                "The key is missing or wrong; send 'Authorization: Bearer KEY' with one made by "
                "'python -m chatbot key add NAME'."
            )
            raise ApiError(401, sentence, code="invalid_api_key")
        return found


def answer_errors(app: FastAPI) -> None:
    """Let every error be answered in OpenAI's shape."""
    app.add_exception_handler(ApiError, _known)
    app.add_exception_handler(ChatbotError, _known)
    app.add_exception_handler(RetrievalError, _known)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(Exception, _fault)


def json_answer(record: BaseModel) -> Response:
    """A record as it is sent."""
    return Response(record.model_dump_json(), media_type=JSON)


def refused(sentence: str) -> Response:
    """The answer to a web site that has no business here."""
    return answer(ApiError(403, sentence, code="forbidden"))


def answer(error: ApiError, headers: dict[str, str] | None = None) -> Response:
    """An error as it is sent."""
    return Response(
        as_json(error.record),
        status_code=error.status,
        headers={**(headers or {}), **error.headers},
        media_type=JSON,
    )


async def _known(request: Request, error: Exception) -> Response:
    assert isinstance(error, ApiError | ChatbotError | RetrievalError)
    return answer(error if isinstance(error, ApiError) else api_error(error))


async def _invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    param = ".".join(str(part) for part in first["loc"][1:]) or None
    return answer(bad(f"{param or 'The request'}: {first['msg']}.", param))


async def _http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    sentence = {
        404: f"There is nothing at {request.url.path[:200]!r}.",
        405: f"{request.method} is not allowed here.",
    }.get(error.status_code, str(error.detail))
    code = {404: "not_found", 405: "method_not_allowed"}.get(error.status_code)
    return answer(ApiError(error.status_code, sentence, code=code), dict(error.headers or {}))


async def _fault(request: Request, error: Exception) -> Response:
    # The server logs the error itself with its traceback.
    return answer(ApiError(500, "A fault in the program; ask again.", code="server_error"))
