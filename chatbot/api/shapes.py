"""What a request for a reply may hold, and what is refused with a sentence. Knows no chat.

The models are OpenAI's as far as this program can follow; a field that would change the reply and
that it cannot follow is refused, never passed over.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
)

from chatbot.api.errors import ApiError, bad

MAX_MESSAGES = 2048
MAX_STOPS = 4
MAX_SHOWN = 64
_INT64 = (1 << 63) - 1


def _whole(value: Any) -> Any:
    """1.0 is a whole number in JSON."""
    whole = isinstance(value, float) and value.is_integer() and abs(value) <= _INT64
    return int(value) if whole else value


_Whole = Annotated[int, BeforeValidator(_whole)]
_Stop = Annotated[str, StringConstraints(min_length=1, max_length=1000)]
_Strict = ConfigDict(strict=True, extra="forbid")
# Clients send back messages as they got them, with fields that are null or only for show.
_Lenient = ConfigDict(strict=True, extra="ignore")


class FileReference(BaseModel):
    """A file that was sent to /v1/files."""

    model_config = _Lenient
    file_id: str | None = None


class ContentPart(BaseModel):
    """A part of a message: text, or a file that was sent before. Images and sound are refused."""

    model_config = _Lenient
    type: str
    text: str | None = None
    file: FileReference | None = None


class ChatMessage(BaseModel):
    """One message of a conversation."""

    model_config = _Lenient
    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: str | Annotated[list[ContentPart], Field(max_length=256)] | None = None
    name: str | None = Field(None, max_length=200)
    tool_calls: Any = None
    function_call: Any = None


class StreamOptions(BaseModel):
    """How a stream ends."""

    model_config = _Lenient
    include_usage: bool | None = None


class ChatRequest(BaseModel):
    """POST /v1/chat/completions.

    `metadata` may hold: `conversation_id` (letters, digits, - and _, or "new"), `file_ids` (ids
    with commas between, or "all"), `history` ("strict" refuses messages that differ from the
    stored ones), and `trace` ("off" leaves it out).
    """

    model_config = _Strict

    model: str = Field(max_length=500)
    messages: list[ChatMessage] = Field(min_length=1, max_length=MAX_MESSAGES)
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    max_tokens: _Whole | None = Field(None, ge=1, le=1_000_000)
    max_completion_tokens: _Whole | None = Field(None, ge=1, le=1_000_000)
    temperature: float | None = Field(None, ge=0, le=2)
    top_p: float | None = Field(None, ge=0, le=1)
    stop: _Stop | Annotated[list[_Stop], Field(max_length=MAX_STOPS)] | None = None
    seed: _Whole | None = Field(None, ge=-_INT64, le=_INT64)
    repetition_penalty: float | None = Field(None, ge=0.5, le=2, description="not of OpenAI")
    metadata: dict[str, Annotated[str, StringConstraints(max_length=16_384)]] | None = Field(
        None, max_length=16
    )
    n: _Whole | None = Field(None, description="1 only")
    user: str | None = None
    safety_identifier: str | None = None
    prompt_cache_key: str | None = None
    store: bool | None = None
    service_tier: str | None = None
    parallel_tool_calls: bool | None = None
    reasoning_effort: str | None = None
    verbosity: str | None = None
    # Only in the values that change nothing:
    tools: Any = None
    tool_choice: Any = None
    functions: Any = None
    function_call: Any = None
    response_format: Any = None
    logprobs: Any = None
    top_logprobs: Any = None
    logit_bias: Any = None
    frequency_penalty: Any = None
    presence_penalty: Any = None
    modalities: Any = None
    audio: Any = None
    prediction: Any = None
    web_search_options: Any = None

    @property
    def reply_tokens(self) -> int | None:
        """The longest reply that is wanted."""
        given = self.max_completion_tokens
        return self.max_tokens if given is None else given

    @property
    def stops(self) -> tuple[str, ...] | None:
        if self.stop is None:
            return None
        return (self.stop,) if isinstance(self.stop, str) else tuple(self.stop)


_TOOLS = "Tools and functions are not called by this server; leave them out."
_PENALTIES = "This penalty cannot be followed; leave it out, or use repetition_penalty."
# Field -> values that change nothing, and what is said of others.
_ONLY: dict[str, tuple[tuple[Any, ...], str]] = {
    "n": ((1,), "One reply at a time is made; ask several times instead of n > 1."),
    "tools": (([],), _TOOLS),
    "tool_choice": (("none", "auto"), _TOOLS),
    "functions": (([],), _TOOLS),
    "function_call": (("none", "auto"), _TOOLS),
    "response_format": (({"type": "text"},), "Replies are text; no other format can be enforced."),
    "logprobs": ((False,), "Probabilities of tokens are not told; leave logprobs out."),
    "top_logprobs": ((0,), "Probabilities of tokens are not told; leave top_logprobs out."),
    "logit_bias": (({},), "Single tokens cannot be weighted; leave logit_bias out."),
    "frequency_penalty": ((0,), _PENALTIES),
    "presence_penalty": ((0,), _PENALTIES),
    "modalities": ((["text"],), "Replies are text only."),
    "audio": ((), "Replies are text only; leave audio out."),
    "prediction": ((), "A predicted reply is not made use of; leave prediction out."),
    "web_search_options": ((), "Nothing is searched outside this machine; send documents."),
}


def shown(name: str) -> str:
    """A name that was sent, so that it can be said back."""
    return name if len(name) <= MAX_SHOWN else f"{name[:MAX_SHOWN]}… ({len(name)} letters)"


def parse_request(body: bytes) -> ChatRequest:
    """The request in a body. Raises ApiError that names the field."""
    try:
        request = ChatRequest.model_validate_json(body)
    except ValidationError as error:
        raise _refused(error) from error
    for name, (fine, sentence) in _ONLY.items():
        value = getattr(request, name)
        if value is not None and not any(_same(value, one) for one in fine):
            raise bad(sentence, name, "unsupported_parameter")
    return request


def _same(value: Any, other: Any) -> bool:
    """Equality by which true is not 1."""
    return value == other and isinstance(value, bool) == isinstance(other, bool)


def _refused(error: ValidationError) -> ApiError:
    found = error.errors(include_url=False)
    # Of a field that may be a text or a list, the text's error comes first and says nothing.
    first = next((one for one in found if one.get("ctx", {}).get("field_type") == "List"), found[0])
    kind, place = first["type"], list(first["loc"])
    if kind == "json_invalid":
        reason = first.get("ctx", {}).get("error", "it is damaged")
        return bad(f"The body is not valid JSON in UTF-8: {reason}.", None, "invalid_json")
    # Behind the field, pydantic names the form that it tried.
    path = [part for part in place if isinstance(part, int) or str(part).isidentifier()]
    while path and path[-1] in ("str", "int", "list"):
        path.pop()
    param = shown(".".join(str(part) for part in path)) or None
    if kind == "extra_forbidden":
        name = shown(str(place[-1]))
        return bad(f"There is no parameter {name!r} here.", name, "unknown_parameter")
    if kind == "too_long" and first["ctx"]["field_type"] == "List":
        sizes = first["ctx"]
        most, there = sizes.get("max_length"), sizes.get("actual_length")
        sentence = (
            f"Invalid {param!r}: array too long. Expected an array with maximum length {most}, "
            f"but got an array with length {there} instead."
        )
        return bad(sentence, param, "array_above_max_length")
    if kind == "missing":
        return bad(f"The parameter {param!r} is missing.", param, "missing_required_parameter")
    return bad(f"{param or 'The body'}: {first['msg']}.", param)
