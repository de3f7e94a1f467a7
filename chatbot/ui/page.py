"""Which event of the page calls which handler, and whose. Decides nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import gradio as gr

from chatbot.api.errors import ApiError
from chatbot.errors import ChatbotError, InputError
from chatbot.ui import endpoints
from chatbot.ui.asks import Asks
from chatbot.ui.calls import Call, checked_id
from chatbot.ui.handlers import Handlers
from chatbot.ui.i18n import pick_language
from chatbot.ui.inbox import COOKIE
from chatbot.ui.layout import TITLE, layout
from chatbot.ui.people import People
from chatbot.ui.screen import Updates
from chatbot.ui.scripts import Answer, Scripts
from chatbot.ui.sentences import in_language

# What the page's own memory of a browser gives to the load event.
_ON_LOAD_JS = """(cid, language) => [
  new URLSearchParams(location.search).get('c') || '', localchat.saved('language')]"""


def build_page(people: People, scripts: Scripts) -> gr.Blocks:
    """The whole page, wired to the handlers of whoever asks."""
    page = gr.Blocks(title=TITLE, fill_width=True, analytics_enabled=False)
    with page:
        widgets = layout(_server_functions(people))
        _Wiring(page, widgets, people).connect()
        _public(scripts)
    return page


def _server_functions(people: People) -> list[Callable[..., Any]]:
    """Questions that the page's script may ask; the browser's claims are checked."""

    def answered(ask: Callable[[Asks, Call], Any]) -> Callable[..., Any]:
        def answer(data: dict[str, Any], request: gr.Request) -> Any:
            return ask(_handlers(people, request).asks, _question(data, request))

        # The name by which the script Asks.
        answer.__name__ = ask.__name__
        return answer

    return [
        answered(ask)
        for ask in (
            Asks.trace, Asks.reply_text, Asks.question_text, Asks.summary_text, Asks.export,
            Asks.machine, Asks.meter, Asks.source, Asks.picture, Asks.case, Asks.warm,
        )
    ]  # fmt: skip


def _public(scripts: Scripts) -> None:
    """The endpoints for scripts; all others are private."""

    # Parameters behind the request may be left out by whoever calls.
    def ask(question: str, request: gr.Request, conversation: str = "") -> dict[str, Any]:
        """Ask the model a question, in the conversation of an id or in a new one."""
        return _told(endpoints.ask, scripts, request, (question, conversation))

    def context(question: str, request: gr.Request, conversation: str = "") -> dict[str, Any]:
        """The prompt that a question would have in a conversation, piece by piece."""
        return _told(endpoints.context, scripts, request, (question, conversation))

    gr.api(ask, api_name="ask", concurrency_limit=None)
    gr.api(context, api_name="context", concurrency_limit=None)


def _told(
    ask: Answer, scripts: Scripts, request: gr.Request, given: tuple[str, str]
) -> dict[str, Any]:
    try:
        return scripts.answer(ask, request.headers, request.session_hash or "", given)
    except (ApiError, ChatbotError) as error:
        raise gr.Error(str(error), print_exception=False) from error


def _handlers(people: People, request: gr.Request) -> Handlers:
    try:
        # What a widget asks by itself comes without the name of a tab; the person is known.
        session = getattr(request, "session_hash", None)
        return people.of(request.headers.get("cookie", ""), session or "")
    except InputError as error:
        accept = request.headers.get("accept-language", "")
        language = pick_language(chosen="", setting="", accept=accept)
        raise gr.Error(in_language(language, str(error)), print_exception=False) from error


def _question(data: object, request: gr.Request) -> Call:
    known = data if isinstance(data, dict) else {}
    return Call(
        "",
        request.cookies.get(COOKIE, ""),
        checked_id(known.get("conversation")),
        known,
    )


class _Wiring:
    """Joins listeners and handlers; outputs are named as in the layout."""

    def __init__(self, page: gr.Blocks, widgets: dict[str, Any], people: People) -> None:
        self._page = page
        self._widgets = widgets
        self._people = people
        hidden = ("bridge", "lang")
        self._outputs = [w for name, w in widgets.items() if name not in hidden]

    def connect(self) -> None:
        """Attach every event."""
        w, h = self._widgets, Handlers
        self._page.load(
            self._load, [w["cid"], w["lang"]], self._outputs, js=_ON_LOAD_JS, **self._common()
        )
        w["cid"].change(None, [w["cid"]], None, js="(id) => localchat.address(id)")
        w["msg"].stop(self._stop, [w["cid"]], None, **self._common())
        w["timer"].tick(self._plain(h.tick), [w["cid"]], self._outputs, **self._common())
        w["bridge"].act(self._plain(h.act), [w["cid"]], self._outputs, **self._common()).success(
            self._plain(h.after_act), [w["cid"]], self._outputs, **self._common()
        )
        w["bridge"].uploaded(self._stream(h.uploaded), [w["cid"]], self._outputs, **self._common())
        self._finish(
            w["msg"].submit(self._send, [w["cid"], w["msg"]], self._outputs, **self._common())
        )
        for event, handler in ((w["bridge"].retry, h.retry), (w["bridge"].edit, h.edit)):
            self._finish(event(self._stream(handler), [w["cid"]], self._outputs, **self._common()))

    def _finish(self, event: Any) -> None:
        inputs = [self._widgets["cid"]]
        event.success(self._plain(Handlers.after_fold), inputs, self._outputs, **self._common())
        # `then` does not run after an error, which would leave Stop on the page for ever.
        event.failure(self._plain(Handlers.redraw), inputs, self._outputs, **self._common())

    @staticmethod
    def _common() -> dict[str, Any]:
        return {
            "show_progress": "hidden",
            "api_visibility": "private",
            # The chat has its own line before the engine, which people can see.
            "concurrency_limit": None,
            "trigger_mode": "multiple",
        }

    def _named(self, updates: Updates) -> dict[Any, Any]:
        # No update at all is written as one that changes nothing.
        named = {self._widgets[name]: value for name, value in updates.items()}
        return named or {self._widgets["timer"]: gr.skip()}

    def _load(self, cid: str, language: str, request: gr.Request) -> dict[Any, Any]:
        accept = request.headers.get("accept-language", "")
        handlers = _handlers(self._people, request)
        return self._named(handlers.load(_call(cid, request), str(language), accept))

    def _stop(self, cid: str, request: gr.Request) -> None:
        _handlers(self._people, request).stop(_call(cid, request))

    def _send(self, cid: str, text: str, request: gr.Request) -> Iterator[dict[Any, Any]]:
        handlers = _handlers(self._people, request)
        yield from self._all_named(handlers.send(_call(cid, request), text))

    def _all_named(self, all_updates: Iterator[Updates]) -> Iterator[dict[Any, Any]]:
        # A generator that yields nothing would empty every output.
        yield self._named({})
        # Closing this one closes that one too, so that a closed tab ends its reply.
        with closing(all_updates):  # type: ignore[type-var]
            for updates in all_updates:
                yield self._named(updates)

    def _plain(self, handler: Callable[[Handlers, Call], Updates]) -> Callable[..., dict[Any, Any]]:
        def run(cid: str, request: gr.Request, event: gr.EventData) -> dict[Any, Any]:
            handlers = _handlers(self._people, request)
            return self._named(handler(handlers, _call(cid, request, event)))

        return run

    def _stream(
        self, handler: Callable[[Handlers, Call], Iterator[Updates]]
    ) -> Callable[..., Iterator[dict[Any, Any]]]:
        def run(cid: str, request: gr.Request, event: gr.EventData) -> Iterator[dict[Any, Any]]:
            handlers = _handlers(self._people, request)
            yield from self._all_named(handler(handlers, _call(cid, request, event)))

        return run


def _call(cid: object, request: gr.Request, event: gr.EventData | None = None) -> Call:
    data = event._data if event is not None and isinstance(event._data, dict) else {}
    owner = request.cookies.get(COOKIE, "")
    return Call(request.session_hash or "", owner, checked_id(cid), data)
