"""An OpenAI-compatible server in a thread, in the manner of several kinds, with faults to order."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import toy_tokenizers as toys
import uvicorn
from jinja2.sandbox import ImmutableSandboxedEnvironment
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from tokenizers import Tokenizer

KINDS = ("vLLM", "llama.cpp", "text", "messages", "silent")
BOS = "<|begin_of_text|>"
SPECIAL = (*toys.LLAMA3_TOKENS,)


@dataclass
class Fault:
    """What the next streamed request meets. A count is in tokens of the reply."""

    status: int = 0
    message: str = "no"
    code: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    drop_after: int | None = None
    stall_after: int | None = None
    ends_after: int | None = None
    """The stream ends in order, but says no reason."""
    hangs: bool = False
    """Not even a status comes."""


class Peer:
    """One server. `faults` are met in order by streamed requests; `requests` are their bodies."""

    def __init__(
        self,
        kind: str,
        folder: Path,
        *,
        key: str | None = None,
        context_tokens: int = 1024,
        reply: Callable[[str], str] = lambda prompt: "The scripted reply.",
    ) -> None:
        self.kind, self.key, self.context_tokens, self.reply = kind, key, context_tokens, reply
        bos = {"bos_token": BOS, "eos_token": "<|eot_id|>"}
        data = toys.byte_level_json(SPECIAL)
        self.folder = toys.model_folder(folder, data, template=toys.LLAMA3, config=bos)
        self._tokenizer = Tokenizer.from_str(data)
        self._template = ImmutableSandboxedEnvironment().from_string(toys.LLAMA3)
        self.model = str(self.folder) if kind == "text" else "toy"
        self.faults: list[Fault] = []
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.cut_off = threading.Event()
        """A reader has gone before the end of a reply."""
        self.token_s = 0.0
        self.breaks_when_long = False
        """A streamed prompt that is too long is not refused but broken off, as llama-cpp-python
        does."""
        self.refuses_options = False
        self.is_loading = False
        """As llama.cpp, which lists its model before that is read."""
        self.tokens_said: Callable[[list[int]], dict[str, Any]] = lambda ids: {"tokens": ids}
        """What /tokenize answers."""
        self._seen: list[list[int]] = []
        self._port = 0
        self.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}/v1"

    def start(self) -> None:
        """Listen, at the same port as before if there was one."""
        # With its protocol named, since answers are else held back for 40 ms.
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", self._port))
        self._port = listener.getsockname()[1]
        config = uvicorn.Config(
            self._app(), log_level="critical", lifespan="off", timeout_graceful_shutdown=1
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(
            target=self._server.run, kwargs={"sockets": [listener]}, daemon=True
        )
        self._thread.start()
        while not self._server.started:
            time.sleep(0.01)

    def stop(self) -> None:
        """Break off all replies and close."""
        self._server.force_exit = True
        self._server.should_exit = True
        self._thread.join(10)

    def ids(self, text: str, *, control: bool = True) -> list[int]:
        """As a server reads a prompt."""
        self._tokenizer.encode_special_tokens = not control
        return list(self._tokenizer.encode(text, add_special_tokens=False).ids)

    def text(self, ids: list[int]) -> str:
        return str(self._tokenizer.decode(ids, skip_special_tokens=False))

    def rendered(self, messages: list[dict[str, str]]) -> str:
        return self._template.render(messages=messages, add_generation_prompt=True, bos_token=BOS)

    def _app(self) -> Starlette:
        routes = [Route("/v1/models", self._models)]
        if self.kind != "silent":
            routes += [Route("/health", self._health)]
        if self.kind in ("messages", "silent"):
            routes += [Route("/v1/chat/completions", self._chat, methods=["POST"])]
        else:
            routes += [Route("/v1/completions", self._completion, methods=["POST"])]
        if self.kind in ("vLLM", "llama.cpp"):
            routes += [
                Route("/tokenize", self._tokenize, methods=["POST"]),
                Route("/detokenize", self._detokenize, methods=["POST"]),
            ]
        if self.kind == "llama.cpp":
            routes += [
                Route("/apply-template", self._apply, methods=["POST"]),
                Route("/props", self._props),
            ]
        return Starlette(routes=routes)

    async def _health(self, request: Request) -> Response:
        if self.is_loading:
            return _error(503, "Loading model")
        return JSONResponse({"status": "fine"})

    async def _models(self, request: Request) -> Response:
        if (refused := self._refused(request)) is not None:
            return refused
        owner = {"vLLM": "vllm", "llama.cpp": "llamacpp"}.get(self.kind, "somebody")
        entry: dict[str, Any] = {"id": self.model, "object": "model", "owned_by": owner}
        if self.kind in ("vLLM", "text", "messages"):
            entry["max_model_len"] = self.context_tokens
        return JSONResponse({"object": "list", "data": [{**entry, "created": 0}]})

    async def _props(self, request: Request) -> Response:
        if self.is_loading:
            return _error(503, "Loading model")
        return JSONResponse({"default_generation_settings": {"n_ctx": self.context_tokens}})

    async def _tokenize(self, request: Request) -> Response:
        body = await request.json()
        if "messages" in body:
            ids = self.ids(self.rendered(body["messages"]))
        elif self.kind == "llama.cpp":
            ids = self.ids(body["content"], control=body["parse_special"])
            ids = self.ids(BOS) * body["add_special"] + ids
        else:
            ids = self.ids(body["prompt"])
        return JSONResponse(self.tokens_said(ids))

    async def _detokenize(self, request: Request) -> Response:
        text = self.text((await request.json())["tokens"])
        return JSONResponse({"content": text, "prompt": text})

    async def _apply(self, request: Request) -> Response:
        text = self.rendered((await request.json())["messages"])
        # As llama.cpp does, which puts the begin token there itself.
        return JSONResponse({"prompt": text.removeprefix(BOS)})

    async def _completion(self, request: Request) -> Response:
        body = await request.json()
        prompt = body["prompt"]
        if isinstance(prompt, list) and self.kind == "text":
            return _error(400, "prompt must be a string")
        # A string gets a begin token of the server's own, as Llama 3's tokenizer does.
        ids = prompt if isinstance(prompt, list) else self.ids(BOS) + self.ids(prompt)
        return await self._answer(request, body, ids, chat=False)

    async def _chat(self, request: Request) -> Response:
        body = await request.json()
        return await self._answer(request, body, self.ids(self.rendered(body["messages"])), True)

    async def _answer(
        self, request: Request, body: dict[str, Any], ids: list[int], chat: bool
    ) -> Response:
        if (refused := self._refused(request)) is not None:
            return refused
        if body["model"] != self.model:
            return _error(404, f"The model `{body['model']}` does not exist.", "model_not_found")
        if self.refuses_options and "stream_options" in body:
            return _error(400, "Unrecognized request argument supplied: stream_options")
        if len(ids) + body["max_tokens"] > self.context_tokens:
            if self.breaks_when_long and body.get("stream"):
                broken = self._stream(body, ids, chat, Fault(drop_after=0))
                return StreamingResponse(broken, media_type="text/event-stream")
            return _error(
                400,
                f"This model's maximum context length is {self.context_tokens} tokens. However, "
                f"you requested {len(ids) + body['max_tokens']} tokens.",
            )
        if not body.get("stream"):
            return JSONResponse(self._event(chat, "x", "length") | self._usage(ids, 1))
        self.requests.append(body)
        self.headers.append(dict(request.headers))
        fault = self.faults.pop(0) if self.faults else Fault()
        if fault.hangs:
            await asyncio.sleep(60)
        if fault.status:
            return _error(fault.status, fault.message, fault.code, fault.headers)
        stream = self._stream(body, ids, chat, fault)
        return StreamingResponse(stream, media_type="text/event-stream")

    async def _stream(
        self, body: dict[str, Any], ids: list[int], chat: bool, fault: Fault
    ) -> AsyncIterator[str]:
        ended = False
        try:
            said = self.ids(self.reply(self.text(ids)), control=False)
            limit = body["max_tokens"]
            usage = self._usage(ids, min(limit, len(said)))
            told = ""
            for place in range(len(said[:limit])):
                if place == fault.drop_after:
                    ended = True
                    raise ConnectionError("dropped, as ordered")
                if place == fault.stall_after:
                    await asyncio.sleep(60)
                if place == fault.ends_after:
                    ended = True
                    return
                await asyncio.sleep(self.token_s)
                whole = self.text(said[: place + 1]).rstrip("\ufffd")
                event = self._event(chat, whole[len(told) :], None)
                told = max(told, whole, key=len)
                if body.get("return_token_ids"):
                    event["choices"][0]["token_ids"] = [said[place]]
                yield f"data: {json.dumps(event)}\n\n"
            last = self._event(chat, "", "length" if len(said) > limit else "stop")
            yield f"data: {json.dumps(last)}\n\n"
            if self.kind != "silent":
                yield f"data: {json.dumps(self._event(chat, None, None) | usage)}\n\n"
            yield "data: [DONE]\n\n"
            ended = True
        finally:
            if not ended:
                self.cut_off.set()

    def _event(self, chat: bool, text: str | None, finish: str | None) -> dict[str, Any]:
        choice: dict[str, Any] = {"index": 0, "finish_reason": finish}
        if chat:
            message = {"role": "assistant", "content": text}
            choice |= {"delta": message, "message": message}
        else:
            choice["text"] = text
        kind = "chat.completion.chunk" if chat else "text_completion"
        choices = [] if text is None else [choice]
        return {"id": "1", "object": kind, "created": 0, "model": self.model, "choices": choices}

    def _usage(self, ids: list[int], said: int) -> dict[str, Any]:
        if self.kind == "silent":
            return {}
        cached = max((_common(ids, seen) for seen in self._seen), default=0)
        self._seen.append(ids)
        usage = {"prompt_tokens": len(ids), "completion_tokens": said}
        usage["total_tokens"] = len(ids) + said
        return {"usage": {**usage, "prompt_tokens_details": {"cached_tokens": cached}}}

    def _refused(self, request: Request) -> Response | None:
        if self.key is None or request.headers.get("authorization") == f"Bearer {self.key}":
            return None
        return _error(401, "Incorrect API key provided.", "invalid_api_key")


def _common(one: list[int], other: list[int]) -> int:
    same = 0
    for mine, theirs in zip(one, other, strict=False):
        if mine != theirs:
            break
        same += 1
    return min(same, len(one) - 1)


def _error(
    status: int, message: str, code: str = "", headers: dict[str, str] | None = None
) -> Response:
    body = {"error": {"message": message, "type": "error", "code": code or None}}
    return JSONResponse(body, status_code=status, headers=headers)
