"""`/ask` and `/context` as tools for programs that speak MCP, over plain HTTP. Knows no page.

The Model Context Protocol's "streamable HTTP" in its simplest form: each POST holds one JSON-RPC
message and is answered with one. Written out here, since the library's own server asks for an older
version of a package than the program is pinned to. Source of the messages: the specification of
2025-06-18, modelcontextprotocol.io.
"""

from __future__ import annotations

import json
from typing import Any

import anyio
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

from chatbot.api.errors import ApiError
from chatbot.errors import ChatbotError
from chatbot.ui import endpoints
from chatbot.ui.scripts import Answer, Scripts
from retrieval.types import RetrievalError

ROUTE = "/mcp"
VERSIONS = ("2025-06-18", "2025-03-26", "2024-11-05")
MAX_BYTES = 1 << 20
_SCHEMA = {
    "type": "object",
    "properties": {
        "question": {"type": "string", "description": "what is asked"},
        "conversation": {
            "type": "string",
            "description": "id of a conversation to go on with, as an earlier answer gave it; "
            "leave it out for a new one",
        },
    },
    "required": ["question"],
}
_TOOLS: dict[str, tuple[str, Answer]] = {
    "ask": (
        "Ask the local model a question; the answer comes with its citations.",
        endpoints.ask,
    ),
    "context": (
        "Show the prompt that a question would have in a conversation, piece by piece.",
        endpoints.context,
    ),
}


class Mcp:
    """An ASGI application for `ROUTE`; whoever wraps it has checked the host and the login."""

    def __init__(self, scripts: Scripts) -> None:
        self._scripts = scripts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        await (await self._response(request))(scope, receive, send)

    async def _response(self, request: Request) -> Response:
        if request.method != "POST":
            # There is no stream of the server's own and no session to end.
            return Response(status_code=405, headers={"allow": "POST"})
        message = _parsed(await _body(request))
        if message is None:
            return _failure(None, -32700, "The message is no JSON object of at most 1 MiB.", 400)
        if "id" not in message:
            return Response(status_code=202)
        return await self._answer(message, request.headers)

    async def _answer(self, message: dict[str, Any], headers: Headers) -> Response:
        name, number = message.get("method"), message["id"]
        given = message.get("params")
        params = given if isinstance(given, dict) else {}
        if name == "initialize":
            return _result(number, _greeting(params))
        if name == "ping":
            return _result(number, {})
        if name == "tools/list":
            return _result(number, {"tools": [_described(tool) for tool in _TOOLS]})
        if name != "tools/call":
            return _failure(number, -32601, "There is no such method.")
        tool, arguments = params.get("name"), params.get("arguments")
        if tool not in _TOOLS or not isinstance(arguments, dict):
            return _failure(number, -32602, "There is no such tool, or it got no arguments.")
        run = lambda: self._called(str(tool), arguments, headers)  # noqa: E731
        try:
            return _result(number, await anyio.to_thread.run_sync(run))
        except (ApiError, ChatbotError, RetrievalError) as error:
            text = {"type": "text", "text": str(error)}
            return _result(number, {"content": [text], "isError": True})

    def _called(self, tool: str, arguments: dict[str, Any], headers: Headers) -> dict[str, Any]:
        # Anything but a text is refused there.
        given = (arguments.get("question", ""), arguments.get("conversation") or "")
        answer = self._scripts.answer(_TOOLS[tool][1], headers, "", given)
        text = json.dumps(answer, ensure_ascii=False)
        return {"content": [{"type": "text", "text": text}], "structuredContent": answer}


def _greeting(params: dict[str, Any]) -> dict[str, Any]:
    asked = params.get("protocolVersion")
    return {
        "protocolVersion": asked if asked in VERSIONS else VERSIONS[0],
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "local-llama-chat", "version": "1"},
    }


def _described(tool: str) -> dict[str, Any]:
    return {"name": tool, "description": _TOOLS[tool][0], "inputSchema": _SCHEMA}


async def _body(request: Request) -> bytes | None:
    """All of it, or None if it is too long."""
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > MAX_BYTES:
            return None
    return body


def _parsed(body: bytes | None) -> dict[str, Any] | None:
    try:
        message = json.loads(body or b"")
    except ValueError:
        return None
    return message if isinstance(message, dict) else None


def _result(number: object, result: dict[str, Any]) -> Response:
    return JSONResponse({"jsonrpc": "2.0", "id": number, "result": result})


def _failure(number: object, code: int, message: str, status: int = 200) -> Response:
    error = {"code": code, "message": message}
    return JSONResponse({"jsonrpc": "2.0", "id": number, "error": error}, status_code=status)
