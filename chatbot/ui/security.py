"""What every request and answer passes: allowed hosts and origins, headers, a mark per browser.

Pure ASGI, so that streams are not held back. Knows nothing of chats or documents.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Iterable, Sequence
from ipaddress import ip_address
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from chatbot.errors import SettingsError
from chatbot.ui.inbox import COOKIE, ROUTE, cookie_of

CONTENT_SECURITY_POLICY = (
    "default-src 'self'; script-src 'self' 'unsafe-inline' 'unsafe-eval'; "
    "style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; font-src 'self' data:; "
    "connect-src 'self'; form-action 'self'; frame-src 'none'; frame-ancestors 'none'; "
    "object-src 'none'; base-uri 'self'"
)
_FORWARDED = (b"x-forwarded", b"forwarded")
_HEADERS = {
    "content-security-policy": CONTENT_SECURITY_POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "x-frame-options": "DENY",
}
# Routes of the library that serve or take files, or reach other hosts. The page uses none.
_CLOSED = (
    "/gradio_api/file=", "/gradio_api/file/", "/file=", "/file/", "/gradio_api/upload",
    "/upload", "/gradio_api/proxy=", "/proxy=", "/gradio_api/stream", "/gradio_api/deep_link",
    "/gradio_api/vibe", "/monitoring", "/gradio_api/custom_component",
)  # fmt: skip


class Guard:
    """Middleware around the whole server."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        hosts: Sequence[str],
        upload: ASGIApp,
        closing: threading.Event,
        behind_proxy: bool = False,
    ) -> None:
        """`closing` tells open streams to end, which would hold the server for minutes.

        `behind_proxy`: the X-Forwarded headers come from a proxy of one's own, and count.
        """
        self._behind_proxy = behind_proxy
        self._app = app
        self._closing = closing
        self._hosts = frozenset(hosts)
        self._upload = upload

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if not self._behind_proxy:
            scope = {**scope, "headers": _not_forwarded(scope["headers"])}
        refusal = self._refusal(scope)
        if scope["type"] == "websocket":
            # The page opens none.
            await send({"type": "websocket.close", "code": 1008})
            return
        guarded = _with_headers(send, Headers(scope=scope))
        if refusal:
            await PlainTextResponse(refusal, status_code=403)(scope, receive, guarded)
        elif scope["path"] == ROUTE:
            await self._upload(scope, receive, guarded)
        else:
            await self._app(scope, self._until_closing(receive), guarded)

    def _until_closing(self, receive: Receive) -> Receive:
        async def guarded() -> Message:
            if self._closing.is_set():
                return {"type": "http.disconnect"}
            return await receive()

        return guarded

    def _refusal(self, scope: Scope) -> str:
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        if host_name(host) not in self._hosts:
            return "This address is not the one of the chat."
        origin = headers.get("origin")
        if origin is not None and urlsplit(origin).netloc != host:
            return "Requests of other web sites are refused."
        if headers.get("sec-fetch-site") == "cross-site" and scope["method"] != "GET":
            return "Requests of other web sites are refused."
        path = "/" + scope["path"].lstrip("/")
        if path.startswith(_CLOSED):
            return "Files are not served."
        return ""


def require_loopback(host: str) -> None:
    """Raise SettingsError unless `host` is an address of this machine only."""
    if host == "localhost":
        return
    try:
        is_loopback = ip_address(host).is_loopback
    except ValueError:
        is_loopback = False
    if not is_loopback:
        message = (
            f"The page cannot be opened on {host}, since it has no login yet and everyone in the "
            "network could read your chats. Use --host 127.0.0.1, and a tunnel such as "
            "ssh -L 7860:127.0.0.1:7860 to reach it from another machine."
        )
        raise SettingsError(message)


def host_name(host: str) -> str:
    """The host of a Host header without its port, in small letters; "" if it has none."""
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""


def _not_forwarded(headers: Iterable[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """Without the headers by which anyone could tell the page that it lies elsewhere."""
    return [(name, value) for name, value in headers if not name.startswith(_FORWARDED)]


def _with_headers(send: Send, request: Headers) -> Send:
    known = cookie_of(request.get("cookie", ""))

    async def guarded(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in _HEADERS.items():
                headers[name] = value
            if not known:
                mark = secrets.token_urlsafe(24)
                cookie = f"{COOKIE}={mark}; Path=/; HttpOnly; SameSite=Strict"
                headers.append("set-cookie", cookie)
        await send(message)

    return guarded
