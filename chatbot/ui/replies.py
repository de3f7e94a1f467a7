"""Turns the events of one reply into updates of the page. Decides nothing about the reply."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import gradio as gr

from chatbot.chat import ChatEvent
from chatbot.errors import ChatbotError, InputError, StoreError
from chatbot.services import Services
from chatbot.ui.desk import Desk, Tab, Ticket
from chatbot.ui.escape import escape_html
from chatbot.ui.i18n import tr
from chatbot.ui.ingest_jobs import IngestJobs
from chatbot.ui.live import advanced, waiting_for
from chatbot.ui.pump import Pump
from chatbot.ui.rows import messages
from chatbot.ui.screen import Screen, Updates
from chatbot.ui.sent import Sent
from chatbot.ui.sentences import in_language
from chatbot.ui.view import LiveReply, Phase, live_parts
from retrieval.types import RetrievalError

UPDATE_S = 0.1
"""Shortest time between two updates of a growing reply; more often would only slow it down."""
WAIT_S = 0.2
"""How often is looked, while nothing comes, whether the tab has turned to another chat."""
RENEW_S = 1.0
"""How often the page is told again that a reply runs: what a button or a file changed just before
may reach it after the reply has begun, and would leave Send in the place of Stop."""
Events = Callable[[Ticket], Iterator[ChatEvent]]


@dataclass(slots=True)
class _Shown:
    """What the updates of a reply have drawn on the page by now."""

    tab: Tab
    """Whose chat they drew last; the page may show another by the time that they reach it."""
    live: LiveReply | None = None
    settled: list[Any] | None = None
    last_s: float = 0.0
    renewed_s: float = field(default_factory=time.monotonic)


class Replies:
    """Runs replies for tabs and yields what their pages show."""

    def __init__(self, services: Services, desk: Desk, jobs: IngestJobs, screen: Screen) -> None:
        self._services = services
        self._desk = desk
        self._jobs = jobs
        self._screen = screen

    def send(self, session: str, tab: Tab, text: str) -> Iterator[Updates]:
        """Ask `text`. What cannot be asked stays in the box, and a warning says why."""
        if not text.strip():
            return
        new = self._services.store.create_conversation
        is_new = not tab.conversation_id
        tab = self._desk.begin(session, tab, lambda: new().id)
        cid = tab.conversation_id
        sent = Sent(self._services.store, cid, text)
        ticket = self._desk.claim(cid, session, LiveReply(text))
        if ticket is None:
            warn(tr(tab.language, "warn.busy"))
            return
        chat = self._services.chat
        shown = _Shown(tab)
        events = partial(chat.reply, cid, text)
        back = yield from self._run(ticket, shown, lambda t: events(stop=t.stop), sent)
        gone = bool(back) and is_new and self._unbegun(ticket)
        yield self._end(ticket, shown, back, is_gone=gone)

    def retry(self, session: str, tab: Tab) -> Iterator[Updates]:
        """Ask the last question again, in place of its turn."""
        cid = tab.conversation_id
        conversation = self._screen.conversation(cid)
        if conversation is None or not conversation.turns:
            return
        last = conversation.turns[-1]
        ticket = self._desk.claim(cid, session, LiveReply(last.question, turn_id=last.id))
        if ticket is None:
            warn(tr(tab.language, "warn.busy"))
            return
        chat = self._services.chat
        shown = _Shown(tab)
        yield from self._run(ticket, shown, lambda t: chat.retry(cid, stop=t.stop))
        yield self._end(ticket, shown)

    def edit(self, session: str, tab: Tab, turn_id: str, text: str) -> Iterator[Updates]:
        """Ask `text` in place of an earlier question; the turns from there on are cut off."""
        cid = tab.conversation_id
        conversation = self._screen.conversation(cid)
        if conversation is None or turn_id not in {turn.id for turn in conversation.turns}:
            return
        ticket = self._desk.claim(cid, session, LiveReply(text, turn_id=turn_id))
        if ticket is None:
            warn(tr(tab.language, "warn.busy"))
            return
        chat = self._services.chat
        shown = _Shown(tab)
        yield from self._run(ticket, shown, lambda t: chat.edit(cid, turn_id, text, stop=t.stop))
        yield self._end(ticket, shown)

    def _run(
        self, ticket: Ticket, shown: _Shown, events: Events, sent: Sent | None = None
    ) -> Generator[Updates, None, str]:
        """All updates of one reply but the last; the text that was not taken, if any, to be
        changed or sent again. Where nobody is left who could, the chat keeps it."""
        tab = shown.tab
        try:
            first = {"msg": gr.update(value="")} if sent else {}
            yield from self._begin(ticket, tab, first)
            if (yield from self._ready(ticket, shown)):
                yield from self._stream(ticket, shown, events)
        except (ChatbotError, RetrievalError) as error:
            # The turn of a chat that was deleted meanwhile cannot be kept, which is no news.
            if self._screen.conversation(ticket.conversation_id) is not None:
                warn(in_language(tab.language, str(error)))
        except GeneratorExit:
            if sent:
                sent.keep()
            raise
        except Exception:
            # A fault of ours, which the page tells by itself.
            yield {"msg": gr.update(value=sent.left)} if sent else {}
            raise
        finally:
            if sent and self._desk.is_left(ticket.session):
                sent.keep()
            self._desk.release(ticket)
        return sent.left if sent else ""

    def _unbegun(self, ticket: Ticket) -> bool:
        """A chat that was begun for a question which was refused is none; whether the tab now
        shows none."""
        cid = ticket.conversation_id
        if self._jobs.rows(cid):
            return False
        drop = partial(self._services.store.drop_if_empty, cid)
        try:
            return self._desk.unbegin(ticket.session, cid, drop)
        except StoreError:  # it stays, empty
            return False

    def _begin(self, ticket: Ticket, tab: Tab, first: Updates) -> Iterator[Updates]:
        box = {**self._screen.box(tab), **first.get("msg", {})}
        yield {
            "cid": tab.conversation_id,
            "chat": self._screen.settled(tab) + messages(live_parts(ticket.live, tab.language)),
            "conversations": self._screen.conversations(tab),
            "msg": box,
        }

    def _ready(self, ticket: Ticket, shown: _Shown) -> Generator[Updates, None, bool]:
        """Wait for the model and for files of this chat that are being read. False if stopped."""
        while not ticket.stop.is_set():
            status = self._services.engine.status
            name = self._jobs.reading(ticket.conversation_id)
            if status.state == "failed":
                raise InputError(status.message)
            if status.state == "ready" and not name:
                return True
            phase: Phase = "documents" if name else "loading"
            ticket.live = replace(ticket.live, phase=phase, document=name)
            is_due = ticket.live != shown.live or self._is_due(ticket, shown)
            # An empty update lets the server notice a closed tab.
            yield self._update(ticket, shown) if is_due else {}
            ticket.stop.wait(WAIT_S)
        return False

    def _runs(self, ticket: Ticket, tab: Tab) -> Updates:
        """What tells a page that a reply runs in the chat that it shows."""
        return {"cid": ticket.conversation_id, "msg": self._screen.box(tab)}

    def _stream(self, ticket: Ticket, shown: _Shown, events: Events) -> Iterator[Updates]:
        """Follow the reply, with at most one update in `UPDATE_S`, also while the model pauses."""
        ticket.live = replace(ticket.live, phase="waiting")
        shown.settled = None  # old turns may have been folded meanwhile
        with closing(Pump(events(ticket), ticket.stop.set)) as pump:
            while True:
                rest_s = shown.last_s + UPDATE_S - time.monotonic()
                try:
                    event = pump.next(max(rest_s, 0.0) if ticket.live != shown.live else WAIT_S)
                except StopIteration:
                    return
                if event is not None:
                    ticket.live = advanced(ticket.live, event)
                else:
                    ticket.live = waiting_for(ticket.live, self._services.library.embedder)
                if ticket.live != shown.live and time.monotonic() - shown.last_s >= UPDATE_S:
                    yield self._update(ticket, shown)
                elif event is None:
                    # An empty update lets the server notice a closed tab.
                    is_due = self._is_due(ticket, shown)
                    yield self._update(ticket, shown) if is_due else {}

    def _is_due(self, ticket: Ticket, shown: _Shown) -> bool:
        """Whether the page has to be told something, though the reply has come no further."""
        return self._was_left(ticket, shown) or self._is_old(shown)

    @staticmethod
    def _is_old(shown: _Shown) -> bool:
        return time.monotonic() - shown.renewed_s >= RENEW_S

    def _was_left(self, ticket: Ticket, shown: _Shown) -> bool:
        """Whether the tab has turned to another chat since the last update."""
        return self._desk.tab(ticket.session).conversation_id != shown.tab.conversation_id

    def _update(self, ticket: Ticket, shown: _Shown) -> Updates:
        """What has changed since the last update, for the tab if it shows this chat."""
        before, shown.live, shown.last_s = shown.live, ticket.live, time.monotonic()
        tab = self._desk.tab(ticket.session)
        if tab.conversation_id != ticket.conversation_id:
            return self._left(ticket, shown)
        if tab != shown.tab or shown.settled is None:
            shown.tab, shown.settled = tab, self._screen.settled(tab)
        update: Updates = {"chat": shown.settled + messages(live_parts(ticket.live, tab.language))}
        if self._is_old(shown):
            shown.renewed_s = time.monotonic()
            update |= self._runs(ticket, tab)
        if ticket.live.trace and (before is None or before.trace is None):
            conversation = self._screen.conversation(ticket.conversation_id)
            update |= self._screen.inspector(tab, conversation, ticket.live.trace)
        return update

    def _left(self, ticket: Ticket, shown: _Shown) -> Updates:
        """Once after the tab has turned to another chat: that chat again, since our last update
        may have reached the page after it was drawn."""
        shown.renewed_s = time.monotonic()
        if not self._was_left(ticket, shown):
            return {}
        shown.tab = tab = self._desk.tab(ticket.session)
        conversation = self._screen.conversation(tab.conversation_id)
        return {
            **self._screen.chat(tab, ticket.session, conversation),
            "cid": tab.conversation_id,
        }

    def _end(
        self, ticket: Ticket, shown: _Shown, back: str = "", *, is_gone: bool = False
    ) -> Updates:
        """The last update of a reply draws the page from the store again."""
        tab = self._desk.tab(ticket.session)
        if tab.conversation_id != ticket.conversation_id and not is_gone:
            return {
                "conversations": self._screen.conversations(tab),
                **self._left(ticket, shown),
            }
        update = self._screen.whole(tab, ticket.session)
        if back:
            update["msg"] = {**update["msg"], "value": back}
        return update


def warn(text: str) -> None:
    """A short message at the edge of the page, shown literally."""
    gr.Warning(escape_html(text), duration=8)
