"""Where uploaded files wait until they are read: an ASGI route and a table of who sent what.

Files never enter the folder that Gradio serves from. A file is known by a random token that only
the browser that sent it may redeem, so no request can name a path. Knows no document and no chat.
"""

from __future__ import annotations

import errno
import logging
import re
import secrets
import shutil
import threading
import time
import unicodedata
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from pathlib import Path
from typing import IO
from urllib.parse import unquote

from anyio import to_thread
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse
from starlette.types import Receive, Scope, Send

from chatbot.store_runner import runner_lives, runner_name

COOKIE = "chat_browser"
ROUTE = "/local/upload"
MAX_WAITING = 64
"""Files of one browser that may wait to be redeemed."""
WAIT_LIMIT_S = 900.0
MAX_NAME_CHARACTERS = 200
_FULL_DISK = (errno.ENOSPC, errno.EDQUOT)
_log = logging.getLogger(__name__)
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


@dataclass(frozen=True, slots=True)
class Waiting:
    """A file that has come in completely and was not read yet."""

    path: Path
    name: str
    owner: str
    since_s: float


class Inbox:
    """Owns the folder of this program's waiting files, one of several programs' under `parent`.

    Programs may share a data folder, so each has a folder of its own there, named after its
    process. What programs that have ended left behind is removed at the start: its tokens are gone.
    """

    def __init__(self, parent: Path, max_bytes: int) -> None:
        self.folder = parent / runner_name().replace(":", "_")
        self.max_bytes = max_bytes
        self._lock = threading.Lock()
        self._waiting: dict[str, Waiting] = {}
        self.folder.mkdir(parents=True)
        _sweep(parent)

    def take(self, owner: str, token: str) -> Waiting | None:
        """The file behind `token` if this browser sent it; from now on the caller owns it."""
        with self._lock:
            waiting = self._waiting.get(token)
            if waiting is None or not owner or waiting.owner != owner:
                return None
            return self._waiting.pop(token)

    def put(self, path: Path, name: str, owner: str) -> str:
        """Keep a file for its sender; returns the token."""
        token = secrets.token_urlsafe(24)
        with self._lock:
            self._waiting[token] = Waiting(path, name, owner, time.monotonic())
        return token

    def is_full(self, owner: str) -> bool:
        """Whether the browser already has too many files waiting. Drops what waited too long."""
        now = time.monotonic()
        with self._lock:
            old = [t for t, w in self._waiting.items() if now - w.since_s > WAIT_LIMIT_S]
            dropped = [self._waiting.pop(token) for token in old]
            full = sum(w.owner == owner for w in self._waiting.values()) >= MAX_WAITING
        for waiting in dropped:
            waiting.path.unlink(missing_ok=True)
        return full

    def close(self) -> None:
        """Remove everything of this program that was not read."""
        with self._lock:
            self._waiting.clear()
        shutil.rmtree(self.folder, ignore_errors=True)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """POST one file as the body, its name percent-encoded in X-File-Name.

        That header is also what keeps other web sites out: a browser asks us first, and we say no.
        """
        request = Request(scope, receive)
        answer = await self._receive(request)
        await answer(scope, receive, send)

    async def _receive(self, request: Request) -> JSONResponse:
        owner = cookie_of(request.headers.get("cookie", ""))
        name = request.headers.get("x-file-name")
        if request.method != "POST" or name is None or not owner:
            return JSONResponse({"error": "refused"}, status_code=403)
        if self.is_full(owner):
            return JSONResponse({"error": "full"}, status_code=429)
        length = request.headers.get("content-length", "")
        if length.isdigit() and int(length) > self.max_bytes:
            return JSONResponse({"error": "too_large"}, status_code=413)
        shown = clean_name(unquote(name))
        path = self.folder / (secrets.token_hex(16) + suffix_of(shown))
        try:
            complete = await self._save(request, path)
        except ClientDisconnect:
            return JSONResponse({"error": "lost"}, status_code=400)
        except OSError as error:
            _log.info("An upload could not be saved.", exc_info=True)
            reason = "disk_full" if error.errno in _FULL_DISK else "not_saved"
            return JSONResponse({"error": reason}, status_code=500)
        if not complete:
            return JSONResponse({"error": "too_large"}, status_code=413)
        return JSONResponse({"token": self.put(path, shown, owner)})

    async def _save(self, request: Request, path: Path) -> bool:
        """Write the body to `path`; False if it is too large. Leaves no part of a file behind."""
        complete = False
        try:
            # Someone may have cleaned up the data folder since the last file.
            self.folder.mkdir(parents=True, exist_ok=True)
            with path.open("wb") as file:
                fits = await self._copy(request, file)
            complete = fits
        finally:
            if not complete:
                path.unlink(missing_ok=True)
        return complete

    async def _copy(self, request: Request, file: IO[bytes]) -> bool:
        size_bytes = 0
        async for piece in request.stream():
            size_bytes += len(piece)
            if size_bytes > self.max_bytes:
                return False
            await to_thread.run_sync(file.write, piece)
        return True


def _sweep(parent: Path) -> None:
    """Remove what stands under `parent` and belongs to no program that is running."""
    for entry in parent.iterdir():
        if entry.is_dir() and not entry.is_symlink():
            if not runner_lives(entry.name.replace("_", ":")):
                shutil.rmtree(entry, ignore_errors=True)
        else:
            entry.unlink(missing_ok=True)


def clean_name(name: str) -> str:
    """The last part of a file name as text to show; never used as a path."""
    last = _CONTROL.sub("", name.replace("\\", "/").rsplit("/", 1)[-1])
    last = unicodedata.normalize("NFC", last).strip()
    if len(last) > MAX_NAME_CHARACTERS:
        stem, dot, suffix = last.rpartition(".")
        end = dot + suffix if stem and len(suffix) <= 10 else ""
        last = last[: MAX_NAME_CHARACTERS - len(end)] + end
    return last or "file"


def suffix_of(name: str) -> str:
    """The format that a name claims, such as ".pdf", or "" for anything unusual."""
    found = re.search(r"\.[A-Za-z0-9]{1,8}$", name)
    return found.group().lower() if found else ""


def cookie_of(header: str) -> str:
    """The browser's own mark in a Cookie header, or ""."""
    try:
        morsel = SimpleCookie(header).get(COOKIE)
    except CookieError:
        return ""
    return morsel.value if morsel else ""
