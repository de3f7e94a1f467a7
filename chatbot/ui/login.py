"""The login of a page that is open to a network: an ASGI route and a table of sessions.

Knows no chat. Sessions live as long as the program; after a restart people log in again.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qs

from anyio import to_thread
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.types import Receive, Scope, Send

from chatbot.ui.calls import checked_id
from chatbot.ui.escape import escape_html as esc
from chatbot.ui.i18n import Language, pick_language, tr
from chatbot.ui.layout import TITLE
from chatbot.users import is_right

SESSION_COOKIE = "chat_session"
LOGIN, LOGOUT = "/local/login", "/local/logout"
CLIENT_LOGIN = "/login"
"""Where gradio_client logs in, if a script gives it `auth=(name, password)`."""
SESSION_S = 14 * 24 * 3600.0
MAX_BODY_BYTES = 4096
TRIES, PAUSE_S = 5, 30.0
"""So many wrong passwords for a name, then a pause."""
_STATUS = {"login.wrong": 401, "login.pause": 429}


@dataclass(frozen=True, slots=True)
class _Session:
    user: str
    hashed: str
    """Of the password it began with; with another one, it is over."""
    since_s: float


class Login:
    """Owns the sessions. `users` gives the hashes by names as they are now; with None nobody needs
    to log in."""

    def __init__(self, users: Callable[[], Mapping[str, str]] | None) -> None:
        self._users = users or dict
        self._needed = users is not None
        self._lock = threading.Lock()
        self._sessions: dict[str, _Session] = {}
        self._wrong: dict[str, tuple[int, float]] = {}

    @property
    def is_needed(self) -> bool:
        """Whether people have to say who they are."""
        return self._needed

    def user_of(self, cookies: str) -> str | None:
        """Whose session a Cookie header belongs to; None for nobody's."""
        token = _session_of(cookies)
        with self._lock:
            session = self._sessions.get(token)
            if session is None:
                return None
            if time.monotonic() - session.since_s > SESSION_S:
                del self._sessions[token]
                return None
            is_known = self._users().get(session.user) == session.hashed
            return session.user if is_known else None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The form, a try to log in, or the end of a session."""
        request = Request(scope, receive)
        answer = await self._answer(request)
        await answer(scope, receive, send)

    async def _answer(self, request: Request) -> Response:
        language = pick_language(
            chosen="", setting="", accept=request.headers.get("accept-language", "")
        )
        if request.url.path == LOGOUT:
            return self._ended(request)
        if request.method != "POST":
            wanted = checked_id(request.query_params.get("c"))
            return HTMLResponse(_form(language, wanted=wanted), status_code=200)
        given = await _given(request)
        by_client = request.url.path == CLIENT_LOGIN
        name = given.get("username" if by_client else "name", "")
        wanted = checked_id(given.get("c"))
        problem, token = await self._try(name, given.get("password"))
        if problem and by_client:
            return JSONResponse({"detail": tr(language, problem)}, status_code=_STATUS[problem])
        if problem:
            form = _form(language, problem, name, wanted)
            return HTMLResponse(form, status_code=_STATUS[problem])
        place = f"/?c={wanted}" if wanted else "/"
        answer = JSONResponse({"success": True}) if by_client else _sent_to(place)
        answer.set_cookie(SESSION_COOKIE, token, httponly=True, samesite="strict", path="/")
        return answer

    async def _try(self, name: str, password: str | None) -> tuple[str, str]:
        """What is wrong with a name and its password, and the token of the session that began."""
        if password is None:
            return "login.wrong", ""
        if self._pauses(name):
            return "login.pause", ""
        # A tenth of a second of work, which must not hold up everybody else.
        users = self._users()
        if not await to_thread.run_sync(is_right, users, name, password):
            self._note_wrong(name, users)
            return "login.wrong", ""
        return "", self._begun(name, users[name])

    def _begun(self, name: str, hashed: str) -> str:
        token, now_s = secrets.token_urlsafe(32), time.monotonic()
        with self._lock:
            self._wrong.pop(name, None)
            # A script may log in anew each time, and never come back with what it got.
            for old in [t for t, s in self._sessions.items() if now_s - s.since_s > SESSION_S]:
                del self._sessions[old]
            self._sessions[token] = _Session(name, hashed, now_s)
        return token

    def _ended(self, request: Request) -> Response:
        if request.method == "POST":
            with self._lock:
                self._sessions.pop(_session_of(request.headers.get("cookie", "")), None)
        answer = _sent_to(LOGIN)
        answer.delete_cookie(SESSION_COOKIE, path="/")
        return answer

    def _pauses(self, name: str) -> bool:
        with self._lock:
            count, last_s = self._wrong.get(name, (0, 0.0))
            return count >= TRIES and time.monotonic() - last_s < PAUSE_S

    def _note_wrong(self, name: str, users: Mapping[str, str]) -> None:
        with self._lock:
            # Made-up names must not fill the memory.
            if name in users:
                count, last_s = self._wrong.get(name, (0, 0.0))
                fresh = count >= TRIES and time.monotonic() - last_s >= PAUSE_S
                self._wrong[name] = (1 if fresh else count + 1, time.monotonic())


def is_login(scope: Scope) -> bool:
    """Whether a request is for `Login`."""
    path = scope["path"]
    return path in (LOGIN, LOGOUT) or (path == CLIENT_LOGIN and scope["method"] == "POST")


async def _given(request: Request) -> dict[str, str]:
    """The fields of a form; none of one that is too long."""
    body = b""
    async for piece in request.stream():
        body += piece
        if len(body) > MAX_BODY_BYTES:
            return {}
    found = parse_qs(body.decode("utf-8", "replace"), keep_blank_values=True)
    return {name: values[0] for name, values in found.items()}


def _sent_to(place: str) -> Response:
    return RedirectResponse(place, status_code=303)


def _session_of(cookies: str) -> str:
    try:
        morsel = SimpleCookie(cookies).get(SESSION_COOKIE)
    except CookieError:
        return ""
    return morsel.value if morsel else ""


def _form(language: Language, problem: str = "", name: str = "", wanted: str = "") -> str:
    """`wanted` is the chat of the address that somebody opened before logging in."""
    told = f'<p role="alert">{esc(tr(language, problem))}</p>' if problem else ""
    label = {key: esc(tr(language, f"login.{key}")) for key in ("title", "name", "password", "go")}
    return (
        f'<!doctype html><html lang="{language}"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width"><meta name="color-scheme" '
        f'content="light dark"><title>{label["title"]}</title><style>{_STYLE}</style></head><body>'
        f'<main><p class="brand">{esc(TITLE)}</p><h1>{label["title"]}</h1>{told}'
        f'<form method="post" action="{LOGIN}"><input type="hidden" name="c" value="{esc(wanted)}">'
        f'<label>{label["name"]}<input name="name" '
        f'value="{esc(name)}" autocomplete="username" required{"" if name else " autofocus"}>'
        f'</label><label>{label["password"]}<input name="password" type="password" '
        f'autocomplete="current-password" required{" autofocus" if name else ""}></label>'
        f"<button>{label['go']}</button>"
        "</form></main></body></html>"
    )


_STYLE = (
    ":root{--bg:#f6f5f1;--box:#fff;--line:#e2dfd6;--text:#23211d;--soft:#68645b;--go:#0c6b62;"
    "--on:#fff;--bad:#b3261e}@media(prefers-color-scheme:dark){:root{--bg:#151517;--box:#1e1e21;"
    "--line:#34343a;--text:#ececee;--soft:#a5a3ab;--go:#4fc4b4;--on:#06231f;--bad:#ff8a80}}"
    "body{font-family:Pretendard,'Noto Sans KR','Apple SD Gothic Neo','Malgun Gothic',NanumGothic,"
    "system-ui,sans-serif;display:grid;place-items:center;min-height:90vh;margin:0;"
    "background:var(--bg);color:var(--text)}"
    "main{box-sizing:border-box;width:min(360px,calc(100vw - 32px));padding:26px 24px;"
    "border:1px solid var(--line);border-radius:16px;background:var(--box);word-break:keep-all}"
    ".brand{margin:0;font-size:13px;color:var(--soft)}h1{font-size:20px;margin:4px 0 0}"
    "label{display:block;margin:16px 0;font-size:13.5px;font-weight:600}"
    "input{display:block;box-sizing:border-box;width:100%;padding:10px 12px;margin-top:6px;"
    "font:inherit;font-size:16px;font-weight:400;color:inherit;background:var(--bg);"
    "border:1px solid var(--line);border-radius:10px}"
    ":focus-visible{outline:2px solid var(--go);outline-offset:1px}"
    "button{width:100%;margin-top:6px;padding:11px;border:0;border-radius:10px;font:inherit;"
    "font-weight:600;cursor:pointer;background:var(--go);color:var(--on)}"
    "[role=alert]{margin:12px 0 0;font-size:14px;line-height:1.5;color:var(--bad)}"
)
