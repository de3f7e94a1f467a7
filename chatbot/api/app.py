"""The routes of the API. Knows no page; is mounted beside it.

Each key has a person, and reaches only that person's conversations and files, as they lie in a
store and a library of their own.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack
from pathlib import PurePath

from anyio import CapacityLimiter, to_thread
from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response

from chatbot.api import schema
from chatbot.api.bodies import read_json
from chatbot.api.completions import Wanted, streamed, whole
from chatbot.api.errors import ApiError, bad
from chatbot.api.file_routes import FileRoutes
from chatbot.api.gate import JSON, Gate, answer_errors, json_answer
from chatbot.api.given import HEADER, asked
from chatbot.api.keys import FILE, Key, KeyFile
from chatbot.api.limits import Accounts
from chatbot.api.planning import Plan
from chatbot.api.results import Clock, Head, as_json
from chatbot.api.running import Event, Runner
from chatbot.api.schema import FileDeleted, FileList, FileObject, Model, ModelList
from chatbot.api.shapes import ChatRequest, parse_request
from chatbot.chat_events import TurnDone
from chatbot.errors import SettingsError
from chatbot.operations import scratch_folder
from chatbot.persons import Persons
from chatbot.records import new_id
from chatbot.windows import window_tokens

MIB = 1 << 20
BLOCKING_CALLS = 32
ANY_MODEL = "default"
SMALL_BODY_BYTES = 64 << 10
"""A larger one is parsed beside the loop, which serves everybody."""


class Api:
    """Owns the replies and uploads of all keys. `app` answers what is asked under /v1."""

    def __init__(self, persons: Persons, *, needs_key: bool = False) -> None:
        """`needs_key`: others than this machine's people may reach the server. Raises
        SettingsError for keys that cannot be read, or are needed and missing."""
        settings = persons.shared.settings
        keys = KeyFile(settings.api_keys or settings.data_dir / FILE)
        if needs_key and not keys.has_keys:
            raise SettingsError(
                "Others could use the API at this address: make a key with 'python -m chatbot key "
                "add NAME' first, or use --host 127.0.0.1 without --auth and --behind-proxy."
            )
        self._persons = persons
        self._accounts = Accounts(persons.shared.store)
        self._gate = Gate(keys, self._accounts)
        self._runner = Runner()
        self._limiter = CapacityLimiter(BLOCKING_CALLS)
        self._files = FileRoutes(
            persons,
            self._gate,
            incoming=scratch_folder(settings) / "incoming-api",
            max_bytes=settings.max_upload_mb * MIB,
            limiter=self._limiter,
        )
        self._started = int(time.time())
        self.app = self._routes()

    def close(self) -> None:
        """Stop replies and uploads, and keep what was counted. Idempotent."""
        self._runner.close()
        self._files.close()
        self._accounts.close()

    @property
    def keys_are_needed(self) -> bool:
        """Whether requests are let in by their keys only."""
        return self._gate.needs_keys

    def key_of(self, authorization: str) -> Key:
        """The key of an Authorization header, for routes beside /v1. Raises ApiError."""
        return self._gate.key_of(authorization)

    def counted(self, key: Key, *, is_reply: bool) -> AbstractContextManager[None]:
        """One request of a key beside /v1, which counts as one of /v1. Raises ApiError (429)."""
        return self._accounts.request(key, is_reply=is_reply)

    def spend(self, key: Key, tokens: int) -> None:
        """Count the tokens of a reply beside /v1."""
        self._accounts.spend(key, tokens)

    async def chat(self, request: Request) -> Response:
        """Answer the last message, as a whole or as a stream."""
        clock = Clock()
        with ExitStack() as stack:
            key = stack.enter_context(self._gate.request(request, is_reply=True))
            body = await read_json(request)
            if len(body) > SMALL_BODY_BYTES:
                call = await to_thread.run_sync(parse_request, body, limiter=self._limiter)
            else:
                call = parse_request(body)
            question = asked(call, request.headers.get(HEADER))
            model = self._model(call.model)

            def make(stop: threading.Event) -> Iterator[Event]:
                services = self._persons.of(key.user)
                plan = Plan(services, self._files.shelf(key.user), call, question)
                for event in plan.run(stop):
                    if isinstance(event, TurnDone) and event.turn.usage is not None:
                        usage = event.turn.usage
                        self._accounts.spend(key, usage.prompt_tokens + usage.completion_tokens)
                    yield event

            wanted = Wanted(
                head=Head(f"chatcmpl-{new_id()}", model),
                clock=clock,
                leave=stack.pop_all(),
                wants_trace=question.wants_trace,
                wants_usage=_wants_usage(call),
            )
            answer = streamed if call.stream else whole
            return await answer(self._runner.events(make), wanted, request.receive)

    async def models(self, request: Request) -> Response:
        """The model that makes the replies."""
        with self._gate.request(request):
            return json_answer(ModelList(data=[self._model_record()]))

    async def model(self, request: Request, model_id: str) -> Response:
        """The model, if it is this one."""
        with self._gate.request(request):
            self._model(model_id, is_asked=False)
            return json_answer(self._model_record())

    async def describe(self, request: Request) -> Response:
        """The OpenAPI description."""
        return Response(as_json(schema.describe(self.app)), media_type=JSON)

    def _routes(self) -> FastAPI:
        app = FastAPI(
            title="Local Llama chat", version="1", openapi_url=None, docs_url=None, redoc_url=None
        )
        answer_errors(app)
        add, errors = app.add_api_route, schema.ERRORS
        add("/v1/openapi.json", self.describe, methods=["GET"], include_in_schema=False)
        add(
            "/v1/chat/completions", self.chat, methods=["POST"],
            responses=schema.CHAT_ANSWERS, openapi_extra=schema.CHAT_BODY,
        )  # fmt: skip
        for path, call, method, model in (
            ("/v1/models", self.models, "GET", ModelList),
            ("/v1/models/{model_id:path}", self.model, "GET", Model),
            ("/v1/files", self._files.files, "GET", FileList),
            ("/v1/files/{file_id}", self._files.file, "GET", FileObject),
            ("/v1/files/{file_id}", self._files.delete_file, "DELETE", FileDeleted),
        ):
            add(path, call, methods=[method], responses={200: {"model": model}, **errors})
        add(
            "/v1/files", self._files.upload, methods=["POST"],
            responses={200: {"model": FileObject}, **errors}, openapi_extra=schema.FILE_BODY,
        )  # fmt: skip
        return app

    def _model(self, wanted: str, *, is_asked: bool = True) -> str:
        """The model's name, if it is the one that is wanted and, when asked, there."""
        name = self._model_name()
        if wanted not in (name, ANY_MODEL):
            sentence = f"There is no model {wanted[:100]!r} here; it is called {name!r}."
            raise ApiError(404, sentence, param="model", code="model_not_found")
        status = self._persons.shared.engine.status
        if is_asked and status.state != "ready":
            # Why it failed names addresses and paths, and may hold a part of a key.
            reason = f": {status.message}" if status.state == "loading" else "; try again later."
            sentence = f"The model is not ready{reason}"
            raise ApiError(503, sentence, code="model_not_ready", retry_after_s=5.0)
        return name

    def _model_name(self) -> str:
        shared = self._persons.shared
        ready = shared.engine.status.state == "ready"
        name = shared.engine.info.model if ready else shared.settings.model
        # Of a file, its place is nobody's business.
        return PurePath(name).name if PurePath(name).is_absolute() else name

    def _model_record(self) -> Model:
        shared = self._persons.shared
        ready = shared.engine.status.state == "ready"
        most = window_tokens(shared.chat.settings, shared.engine) if ready else None
        return Model(id=self._model_name(), created=self._started, max_model_len=most)


def _wants_usage(call: ChatRequest) -> bool:
    if call.stream_options is not None and not call.stream:
        raise bad("stream_options are for streams; set stream, too.", "stream_options")
    return bool(call.stream_options and call.stream_options.include_usage)
