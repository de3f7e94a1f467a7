"""What every request and answer passes: allowed hosts and origins, headers, a mark per browser.

Pure ASGI, so that streams are not held back. Knows nothing of chats or documents.
"""

from __future__ import annotations

import secrets
from collections.abc import Collection, Iterable, Mapping
from functools import partial
from ipaddress import ip_address
from urllib.parse import parse_qs, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from chatbot.api.app import Api
from chatbot.api.errors import ApiError
from chatbot.api.gate import answer as refusal_of
from chatbot.api.gate import refused
from chatbot.errors import SettingsError
from chatbot.loopback import is_loopback
from chatbot.ui.calls import checked_id
from chatbot.ui.closing import ENDED, Closing, run_until_closing
from chatbot.ui.host_names import Refusals, asked_name
from chatbot.ui.inbox import COOKIE, ROUTE, cookie_of
from chatbot.ui.leaving import QUEUE, watched
from chatbot.ui.login import LOGIN, Login, is_login
from chatbot.ui.mcp import ROUTE as MCP
from chatbot.ui.people import People
from chatbot.ui.scripts import KEY_HINT, Scripts, is_for_scripts

CONTENT_SECURITY_POLICY = (
    "default-src 'self'; script-src 'self' 'unsafe-inline' 'unsafe-eval'; "
    "style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; font-src 'self' data:; "
    "connect-src 'self'; form-action 'self'; frame-src 'none'; frame-ancestors 'none'; "
    "object-src 'none'; base-uri 'self'"
)
# Asked by the library itself as it starts; says nothing and changes nothing afterwards.
_STARTUP = "/gradio_api/startup-events"
_FORWARDED = (b"x-forwarded", b"forwarded")
_HEADERS = {
    "content-security-policy": CONTENT_SECURITY_POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "x-frame-options": "DENY",
}
# The library would compress its three megabytes of scripts anew at each visit, which takes longer
# than a browser on the same machine takes to read them; it leaves alone what has an encoding.
_LOCAL_HEADERS = {**_HEADERS, "content-encoding": "identity"}
# Tells the page's script that it must ask the person to log in.
_LOGIN_NEEDED = {"x-chat-login": "needed"}
API = "/v1/"
_API_HEADERS = {"x-content-type-options": "nosniff", "cache-control": "no-store"}
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
        hosts: Collection[str],
        refusals: Refusals,
        upload: ASGIApp,
        mcp: ASGIApp,
        login: Login,
        people: People,
        scripts: Scripts,
        closing: Closing,
        behind_proxy: bool = False,
        api: Api | None = None,
    ) -> None:
        """`closing` tells open streams to end, which would hold the server for minutes.

        `behind_proxy`: the X-Forwarded headers come from a proxy of one's own, and count.
        """
        self._behind_proxy = behind_proxy
        self._app = app
        self._closing = closing
        self._hosts = frozenset(hosts)
        self._refusals = refusals
        self._upload = upload
        self._mcp = mcp
        self._login = login
        self._people = people
        self._scripts = scripts
        self._api = api

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if not self._behind_proxy:
            scope = {**scope, "headers": _not_forwarded(scope["headers"])}
        if self._api is not None and scope["type"] == "http" and scope["path"].startswith(API):
            await self._pass_on(self._api, scope, receive, send)
            return
        if self._closing.is_set() and scope["type"] == "http":
            await ENDED(scope, receive, send)
            return
        refusal = self._refusal(scope)
        if scope["type"] == "websocket":
            # The page opens none.
            await send({"type": "websocket.close", "code": 1008})
            return
        headers = _HEADERS if self._behind_proxy or not _is_here(scope) else _LOCAL_HEADERS
        guarded = _marked(_with_headers(send, headers), Headers(scope=scope))
        if refusal:
            await PlainTextResponse(refusal, status_code=403)(scope, receive, guarded)
        elif self._login.is_needed and is_login(scope):
            await self._login(scope, receive, guarded)
        elif (answer := self._kept_out(scope)) is not None:
            await answer(scope, receive, guarded)
        elif scope["path"] == ROUTE:
            await self._upload(scope, receive, guarded)
        elif scope["path"] == MCP:
            await self._mcp(scope, receive, guarded)
        else:
            if scope["path"] == QUEUE:
                left = partial(self._people.leave, _session(scope))
                receive, guarded = watched(receive, guarded, left)
            await run_until_closing(self._closing, self._app, scope, receive, guarded)

    async def _pass_on(self, api: Api, scope: Scope, receive: Receive, send: Send) -> None:
        """A request of a program, which says by a key who it is. Where none is needed, other web
        sites must be kept out as from the page."""
        plain = _with_headers(send, _API_HEADERS)
        refusal = "" if api.keys_are_needed else self._refusal(scope)
        if refusal:
            await refused(refusal)(scope, receive, plain)
        else:
            await run_until_closing(self._closing, api.app, scope, receive, plain)

    def _kept_out(self, scope: Scope) -> Response | None:
        """The answer to nobody, and to somebody who asks for what another's tab hears."""
        headers = Headers(scope=scope)
        try:
            key = self._scripts.key_of(headers) if is_for_scripts(scope["path"]) else None
        except ApiError as error:
            return refusal_of(error)
        name = key.user if key else self._people.name_of(headers.get("cookie", ""))
        if name is None and scope["path"] != _STARTUP:
            return _stranger(scope)
        if not self._people.may_listen(name, _session(scope)):
            text = "This tab is another person's."
            return PlainTextResponse(text, status_code=403, headers=_LOGIN_NEEDED)
        return None

    def _refusal(self, scope: Scope) -> str:
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        name = asked_name(host)
        # A page elsewhere can give its own name our address, but not a number.
        if name not in self._hosts and not (self._login.is_needed and _is_address(name)):
            return self._refusals.of_name(name, headers.get("accept-language", ""))
        origin = headers.get("origin")
        if origin is not None and urlsplit(origin).netloc != host:
            return "Requests of other web sites are refused."
        if headers.get("sec-fetch-site") == "cross-site" and scope["method"] != "GET":
            return "Requests of other web sites are refused."
        path = "/" + scope["path"].lstrip("/")
        if path.startswith(_CLOSED):
            return "Files are not served."
        return ""


def require_login(host: str, has_users: bool) -> None:
    """Raise SettingsError for an address that others can reach, unless people log in."""
    if has_users or is_loopback(host):
        return
    raise SettingsError(
        f"On {host} everyone in the network could read your chats. Say who may, with 'python -m "
        "chatbot user add NAME' and --auth FILE; or use --host 127.0.0.1, with a tunnel such as "
        "ssh -L 7860:127.0.0.1:7860 from other machines."
    )


def _session(scope: Scope) -> str:
    """Which tab's events are asked for; "" for none."""
    query = parse_qs(scope.get("query_string", b"").decode("latin-1"))
    return query.get("session_hash", [""])[0]


def _stranger(scope: Scope) -> Response:
    """Someone who has not logged in: the form for a person, a refusal for a program."""
    wants_page = "text/html" in Headers(scope=scope).get("accept", "")
    if scope["method"] == "GET" and wants_page:
        query = parse_qs(scope.get("query_string", b"").decode("latin-1"))
        chat = checked_id(query.get("c", [""])[0])
        return RedirectResponse(f"{LOGIN}?c={chat}" if chat else LOGIN, status_code=303)
    text = "Log in first." + (KEY_HINT if is_for_scripts(scope["path"]) else "")
    return PlainTextResponse(text, status_code=401, headers=_LOGIN_NEEDED)


def _is_here(scope: Scope) -> bool:
    """Whether whoever asks is on this machine."""
    return is_loopback((scope.get("client") or ("",))[0])


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


def _not_forwarded(headers: Iterable[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """Without the headers by which anyone could tell the page that it lies elsewhere."""
    return [(name, value) for name, value in headers if not name.startswith(_FORWARDED)]


def _with_headers(send: Send, added: Mapping[str, str]) -> Send:
    async def guarded(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in added.items():
                headers[name] = value
        await send(message)

    return guarded


def _marked(send: Send, request: Headers) -> Send:
    """Give a browser its mark, unless it has one."""
    known = cookie_of(request.get("cookie", ""))

    async def guarded(message: Message) -> None:
        if message["type"] == "http.response.start" and not known:
            mark = secrets.token_urlsafe(24)
            cookie = f"{COOKIE}={mark}; Path=/; HttpOnly; SameSite=Strict"
            MutableHeaders(scope=message).append("set-cookie", cookie)
        await send(message)

    return guarded
