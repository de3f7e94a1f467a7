"""The routes for those who run the program: /healthz, /readyz and /metrics, before all others.

Pure ASGI, so that streams are not held back. They tell nothing about people or texts; figures only
to who shows the token of the settings.
"""

from __future__ import annotations

import functools
import json

from anyio import to_thread
from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from chatbot.operations import may_read_metrics, readiness
from chatbot.services import Services

ROUTES = ("/healthz", "/readyz", "/metrics")
API = "/v1/"


class Health:
    """Middleware outside of all others; also counts what the server answers."""

    def __init__(self, app: ASGIApp, *, services: Services) -> None:
        self._app = app
        self._services = services

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
        elif scope["path"] in ROUTES and scope["method"] in ("GET", "HEAD"):
            answer = await self._answer(scope)
            answer.headers["cache-control"] = "no-store"
            await answer(scope, receive, send)
        else:
            await self._app(scope, receive, self._counting(scope, send))

    async def _answer(self, scope: Scope) -> Response:
        if scope["path"] == "/healthz":
            return _json({"status": "ok"}, 200)
        if scope["path"] == "/readyz":
            found = await to_thread.run_sync(readiness, self._services)
            status = "ok" if found.is_ready else "not ready"
            return _json({"status": status, **found.parts}, 200 if found.is_ready else 503)
        if not may_read_metrics(
            self._services.settings, Headers(scope=scope).get("authorization", "")
        ):
            return Response("Not Found", 404, media_type="text/plain")
        from chatbot.exposition import CONTENT_TYPE, metrics_text

        text = await to_thread.run_sync(functools.partial(metrics_text, self._services))
        return Response(text, headers={"content-type": CONTENT_TYPE})

    def _counting(self, scope: Scope, send: Send) -> Send:
        area = "api" if scope["path"].startswith(API) else "page"

        async def counting(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._services.chat.queue.tally.request(area, message["status"])
            await send(message)

        return counting


def _json(values: dict[str, str], status: int) -> Response:
    return Response(json.dumps(values), status, media_type="application/json")
