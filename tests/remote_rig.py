"""Engines at servers that tests start, and what tests ask of them."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from chatbot.engine.base import ChatTokenizer, Engine
from chatbot.engine.chat_format import assemble_ids
from chatbot.engine.remote import RemoteEngine, connect
from chatbot.settings import Settings

MODEL = {"id": "m", "object": "model", "created": 0, "owned_by": "x", "max_model_len": 2048}
WHOLE = {"choices": [{"index": 0, "message": {"content": "x"}, "finish_reason": "length"}]}


class Quiet:
    """Takes reports and tells nobody."""

    def __call__(self, message: str, progress: float | None = None) -> None: ...

    def offer_tokenizer(self, tokenizer: ChatTokenizer) -> None: ...


def remote_engine(url: str, **settings: object) -> RemoteEngine:
    """An engine at a server."""
    return connect(Settings(engine_url=url, **settings), Quiet())  # type: ignore[arg-type]


def prompt_of(engine: Engine, question: str, system: str = "Be kind.") -> tuple[int, ...]:
    """One question as a prompt for this engine."""
    tokenizer = engine.tokenizer
    return assemble_ids(
        tokenizer.chat_format, tokenizer.encode(system), [], tokenizer.encode(question)
    )


class Liar:
    """Answers each address with what stands in `says`, and each stream with `streams`."""

    def __init__(self) -> None:
        self.says: dict[str, Any] = {}
        self.streams: Callable[[], Iterator[Any]] = lambda: iter(())
        self.refusal: tuple[int, str] | None = None
        self.elsewhere: str | None = None
        self.raw: Callable[[Any], tuple[int, str, list[bytes]]] | None = None
        """Status, kind and bytes of the answer to a body, instead of all the rest."""
        self.asked = 0
        self.drips = ""
        """An address whose answer comes blank by blank, without an end."""
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        # How often it looks whether to end: half a second otherwise, in every test.
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        self.url = f"http://127.0.0.1:{self._server.server_port}/v1"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        liar = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_: Any) -> None: ...

            def do_GET(self) -> None:
                said = liar.says.get(self.path)
                self._send(404 if said is None else 200, said or {})

            def do_POST(self) -> None:
                liar.asked += 1
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                if not body.get("stream"):
                    return self.do_GET()
                if liar.raw is not None:
                    status, kind, parts = liar.raw(body)
                    self._head(status, kind)
                    for part in parts:
                        self.wfile.write(part)
                    return None
                if liar.elsewhere is not None:
                    self.send_response(307)
                    self.send_header("location", liar.elsewhere)
                    self.end_headers()
                    return None
                if liar.refusal is not None:
                    status, text = liar.refusal
                    return self._send(status, {"error": {"message": text}})
                self._head(200, "text/event-stream")
                try:
                    for event in liar.streams():
                        self.wfile.write(b"data: %s\n\n" % json.dumps(event).encode())
                        self.wfile.flush()
                    self.wfile.write(b"data: [DONE]\n\n")
                except OSError:
                    return None  # the reader has gone
                return None

            def _send(self, status: int, said: Any) -> None:
                self._head(status, "text/html" if isinstance(said, str) else "application/json")
                while self.path == liar.drips:
                    self.wfile.write(b" ")
                    time.sleep(0.02)
                self.wfile.write((said if isinstance(said, str) else json.dumps(said)).encode())

            def _head(self, status: int, kind: str) -> None:
                self.send_response(status)
                self.send_header("content-type", kind)
                self.end_headers()

        return Handler


def piece(text: Any = None, finish: Any = None, **more: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": finish}], **more}


@contextmanager
def a_model() -> Iterator[Liar]:
    """A server of one model that says nothing odd until it is told to."""
    liar = Liar()
    liar.says = {"/v1/models": {"data": [MODEL]}, "/v1/chat/completions": WHOLE}
    try:
        yield liar
    finally:
        liar.close()
