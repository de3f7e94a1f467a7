"""What the API answers with, as models, and its OpenAPI description. Knows no chat."""

from __future__ import annotations

from typing import Any, Literal

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel

from chatbot.api.file_records import FileInfo
from chatbot.api.shapes import ChatRequest

_REF = "#/components/schemas/{model}"
DESCRIPTION = """\
The chat with its memory and its documents, behind the interface of OpenAI.

Without a conversation id, the messages of a request are the conversation, and nothing is stored.
With `metadata.conversation_id` or the header `X-Conversation-Id`, the stored one counts and
only the last message is new. See docs/api.md of the program.
"""


class Model(BaseModel):
    """A model that makes replies."""

    id: str
    object: Literal["model"] = "model"
    created: int
    owned_by: str = "local"
    max_model_len: int | None = None
    """Longest prompt and reply together, as vLLM tells it; none while the model loads."""


class ModelList(BaseModel):
    object: Literal["list"] = "list"
    data: list[Model]


class FileObject(BaseModel):
    """A file. `status` "uploaded": it is being read; `status_details` says what is wrong."""

    id: str
    object: Literal["file"] = "file"
    bytes: int
    created_at: int
    expires_at: int | None = None
    filename: str
    purpose: str = "user_data"
    status: Literal["uploaded", "processed", "error"]
    status_details: str | None = None

    @classmethod
    def of(cls, info: FileInfo) -> FileObject:
        return cls(
            id=info.id,
            bytes=info.n_bytes,
            created_at=info.created,
            filename=info.name,
            status=info.status,
            status_details=info.details or None,
        )


class FileList(BaseModel):
    object: Literal["list"] = "list"
    data: list[FileObject]
    has_more: bool
    first_id: str | None = None
    last_id: str | None = None


class FileDeleted(BaseModel):
    id: str
    object: Literal["file"] = "file"
    deleted: bool = True


class ErrorBody(BaseModel):
    message: str
    type: str
    param: str | None
    code: str | None


class ErrorAnswer(BaseModel):
    """Every answer that is not a success."""

    error: ErrorBody


class TokenDetails(BaseModel):
    """`cached_tokens` did not have to be read again."""

    cached_tokens: int


class UsageBody(BaseModel):
    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    prompt_tokens_details: TokenDetails


class ReplyMessage(BaseModel):
    role: Literal["assistant"]
    content: str


class Choice(BaseModel):
    index: int
    message: ReplyMessage
    finish_reason: Literal["stop", "length"]


class Own(BaseModel):
    """What OpenAI has no field for: the prompt piece by piece, sources, notices, times."""

    conversation_id: str | None
    turn_id: str | None
    finish: str
    notices: list[dict[str, Any]]
    citations: list[dict[str, Any]]
    unsupported: list[str]
    best_sentence: dict[str, Any] | None
    timings: dict[str, float]
    trace: dict[str, Any] | None = None


class ChatCompletion(BaseModel):
    """A reply. A stream has chunks of it, and `chatbot` in its last one."""

    id: str
    object: Literal["chat.completion"]
    created: int
    model: str
    choices: list[Choice]
    usage: UsageBody
    chatbot: Own


ERRORS: dict[int | str, dict[str, Any]] = {
    "4XX": {"model": ErrorAnswer, "description": "What was sent is wrong, or not allowed."},
    "5XX": {"model": ErrorAnswer, "description": "The server could not do it."},
}
CHAT_ANSWERS: dict[int | str, dict[str, Any]] = {
    200: {
        "model": ChatCompletion,
        "description": "The reply; with `stream`, an event stream of chat.completion.chunk.",
        "content": {"text/event-stream": {}},
    },
    **ERRORS,
}
CHAT_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {"schema": {"$ref": _REF.format(model=ChatRequest.__name__)}}
        },
    }
}
FILE_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "required": ["file"],
                    "properties": {
                        "file": {"type": "string", "format": "binary"},
                        "purpose": {"type": "string", "enum": ["user_data", "assistants"]},
                    },
                }
            }
        },
    }
}


def describe(app: FastAPI) -> dict[str, Any]:
    """The OpenAPI description of the routes, with the request that is parsed by hand."""
    if app.openapi_schema is None:
        made = get_openapi(
            title=app.title,
            version=app.version,
            description=DESCRIPTION,
            routes=app.routes,
        )
        request = ChatRequest.model_json_schema(ref_template=_REF)
        schemas = made.setdefault("components", {}).setdefault("schemas", {})
        schemas |= request.pop("$defs", {})
        schemas[ChatRequest.__name__] = request
        for unused in ("HTTPValidationError", "ValidationError"):
            schemas.pop(unused, None)
        made["components"]["securitySchemes"] = {"key": {"type": "http", "scheme": "bearer"}}
        made["security"] = [{"key": []}]
        for path in made["paths"].values():
            for operation in path.values():
                operation["responses"].pop("422", None)
        app.openapi_schema = made
    return app.openapi_schema
