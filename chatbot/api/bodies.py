"""Bodies of requests, read within bounds: JSON as bytes, a file onto the disk. Knows no chat."""

from __future__ import annotations

import re
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import IO

from anyio import to_thread
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.types import Message, Receive

from chatbot.api.errors import ApiError, bad
from chatbot.api.waiting import WaitingFile, WaitingFiles

MAX_JSON_BYTES = 4 << 20
MULTIPART_SLACK_BYTES = 64 << 10
"""Of an upload, what is not the file itself."""
MAX_FIELD_BYTES = 16 << 10
PURPOSES = ("user_data", "assistants")
_SUFFIX = re.compile(r"\.[A-Za-z0-9]{1,8}$")


class Incoming:
    """Takes in files, which then wait to be read."""

    def __init__(self, waiting: WaitingFiles, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self._waiting = waiting

    async def receive(self, request: Request, user: str) -> WaitingFile:
        """The file of a multipart request by a person. Raises ApiError."""
        if "multipart/form-data" not in request.headers.get("content-type", ""):
            raise bad("Send the file as multipart/form-data, in the field 'file'.", "file")
        bound = self.max_bytes + MULTIPART_SLACK_BYTES
        async with _form(request, bound) as (file, purpose):
            if purpose not in PURPOSES:
                raise bad(f"The purpose is one of {', '.join(PURPOSES)}.", "purpose")
            if (file.size or 0) > self.max_bytes:
                raise _too_large(self.max_bytes)
            name = (file.filename or "file").replace("\\", "/").rsplit("/", 1)[-1] or "file"
            return await to_thread.run_sync(self._keep, file.file, name, user)

    def _keep(self, source: IO[bytes], name: str, user: str) -> WaitingFile:
        path = self._waiting.new_path(_suffix(name))
        try:
            with path.open("wb") as target:
                shutil.copyfileobj(source, target)
            return self._waiting.keep(path, name, user)
        except OSError as error:
            path.unlink(missing_ok=True)
            sentence = f"The file could not be saved ({error.strerror}); ask who runs the server."
            raise ApiError(507, sentence, code="not_saved") from error


async def read_json(request: Request) -> bytes:
    """The body of a request. Raises ApiError for one that is too large or breaks off."""
    kind = request.headers.get("content-type", "application/json").partition(";")[0].strip()
    if kind.lower() != "application/json":
        raise ApiError(415, "Send the request as application/json.", code="invalid_content_type")
    pieces = []
    try:
        async for piece in Request(request.scope, _bounded(request, MAX_JSON_BYTES)).stream():
            pieces.append(piece)
    except ClientDisconnect as error:
        raise bad("The request broke off.", code="incomplete") from error
    return b"".join(pieces)


@asynccontextmanager
async def _form(request: Request, bound: int) -> AsyncIterator[tuple[UploadFile, str]]:
    reader = Request(request.scope, _bounded(request, bound))
    try:
        form = await reader.form(max_files=1, max_fields=8, max_part_size=MAX_FIELD_BYTES)
    except ClientDisconnect as error:
        raise bad("The upload broke off.", code="incomplete") from error
    except HTTPException as error:
        raise bad(f"The form cannot be read: {error.detail}") from error
    try:
        file, purpose = form.get("file"), form.get("purpose", PURPOSES[0])
        if not isinstance(file, UploadFile):
            raise bad("There is no file in the field 'file'.", "file", "missing_required_parameter")
        if not isinstance(purpose, str):
            raise bad("The purpose is a text.", "purpose")
        yield file, purpose
    finally:
        await form.close()


def _bounded(request: Request, max_bytes: int) -> Receive:
    length = request.headers.get("content-length", "")
    if length.isdigit() and int(length) > max_bytes:
        raise _too_large(max_bytes)
    taken = 0

    async def receive() -> Message:
        nonlocal taken
        message = await request.receive()
        taken += len(message.get("body", b""))
        if taken > max_bytes:
            raise _too_large(max_bytes)
        return message

    return receive


def _too_large(max_bytes: int) -> ApiError:
    sentence = f"The body may have {max_bytes / (1 << 20):g} MiB; send less."
    return ApiError(413, sentence, code="too_large")


def _suffix(name: str) -> str:
    """The format that a name claims, or "" for anything unusual."""
    found = _SUFFIX.search(name)
    return found.group().lower() if found else ""
