"""Draws the page from the store: what each widget shows for one tab. Decides nothing else."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import gradio as gr

from chatbot.errors import InputError
from chatbot.messages import Conversation, MemoryFigures, PromptTrace, Version
from chatbot.services import Services
from chatbot.ui import lists, machine_html, memory_html, panel
from chatbot.ui.desk import Desk, Tab
from chatbot.ui.i18n import Language, tr
from chatbot.ui.ingest_jobs import IngestJobs
from chatbot.ui.machine_html import Machine
from chatbot.ui.options import Options
from chatbot.ui.options_html import options_html
from chatbot.ui.rows import messages
from chatbot.ui.status_html import status_html
from chatbot.ui.view import LiveReply, Welcome, first_shown, live_parts, settled_turns, view

Updates = dict[str, Any]
"""New values by the name of the widget."""


class Screen:
    """Reads the services and makes updates of widgets; owns nothing."""

    def __init__(
        self,
        services: Services,
        desk: Desk,
        jobs: IngestJobs,
        options: Options,
        *,
        user: str = "",
    ) -> None:
        self._services = services
        self._desk = desk
        self._jobs = jobs
        self._options = options
        self._user = user

    def whole(self, tab: Tab, session: str) -> Updates:
        """Every widget that depends on the tab, its chat or its language."""
        conversation = self.conversation(tab.conversation_id)
        return {
            **self.chat(tab, session, conversation),
            **self.side(tab, conversation),
            **self.labels(tab),
            "cid": tab.conversation_id,
        }

    def chat(self, tab: Tab, session: str, conversation: Conversation | None) -> Updates:
        """The chat with its panel, and Send or Stop."""
        ticket = self._desk.running(tab.conversation_id)
        live = ticket.live if ticket else None
        traces = self._traces(tab, conversation, live)
        newest = list(traces.values())[-1] if traces else None
        shown = view(
            conversation,
            language=tab.language,
            shown=tab.shown,
            live=live,
            traces=traces,
            versions=self._versions(conversation),
            welcome=self._welcome(conversation),
        )
        elsewhere = ticket is not None and ticket.session != session
        return {
            "chat": messages(shown.parts),
            "msg": self.box(tab),
            "timer": gr.Timer(active=elsewhere or not self._is_settled()),
            **self.inspector(tab, conversation, (live.trace if live else None) or newest),
        }

    def settled(self, tab: Tab) -> list[Any]:
        """The rows of the chat without the reply that is being made."""
        conversation = self.conversation(tab.conversation_id)
        ticket = self._desk.running(tab.conversation_id)
        live = ticket.live if ticket else None
        traces = self._traces(tab, conversation, live)
        rows = view(
            conversation,
            language=tab.language,
            shown=tab.shown,
            live=live,
            traces=traces,
            versions=self._versions(conversation),
        )
        count = len(live_parts(live, tab.language)) if live else 0
        return messages(rows.parts[: len(rows.parts) - count])

    def inspector(
        self, tab: Tab, conversation: Conversation | None, trace: PromptTrace | None
    ) -> Updates:
        """Meter, context, summary, facts and machine."""
        language = tab.language
        decisions = self._services.store.fold_decisions(conversation.id) if conversation else ()
        turns = conversation.turns if conversation else ()
        machine = replace(self._machine(), figures=self.figures())
        return {
            "meter": panel.meter_html(language, trace),
            "context": panel.context_html(language, trace),
            "summary": memory_html.summary_html(language, conversation, decisions),
            "facts": memory_html.facts_html(language, conversation),
            "memory": machine_html.machine_html(language, machine, turns, self.titles()),
        }

    def figures(self) -> MemoryFigures | None:
        """What memory takes now; None while there is no model."""
        return self._services.engine.memory() if self._is_ready() else None

    def titles(self) -> dict[str, str]:
        """The titles of the chats by their ids."""
        return {c.id: c.title for c in self._services.store.list_conversations()}

    def meter(self, language: Language, conversation_id: str) -> str:
        """The meter without a draft: what the last prompt took."""
        return panel.meter_html(language, self._newest_trace(conversation_id))

    def settings(self, tab: Tab, refused: dict[str, str] | None = None) -> str:
        """The form of the settings."""
        conversation = self.conversation(tab.conversation_id)
        system_text = (conversation.system_text or "") if conversation else ""
        return options_html(tab.language, self._options.form(system_text, refused))

    def side(self, tab: Tab, conversation: Conversation | None = None) -> Updates:
        """The lists of chats and documents, and the line over the chat."""
        conversation = conversation or self.conversation(tab.conversation_id)
        return {
            "conversations": self.conversations(tab),
            "documents": self.documents(tab, conversation),
            "top": self.top(tab, conversation),
        }

    def conversations(self, tab: Tab) -> str:
        """The list of chats that have begun."""
        known = self._services.store.search_conversations(tab.search)
        running = {item.id for item in known if self._desk.running(item.id)}
        listed = lists.worth_listing(known, {tab.conversation_id, *running})
        return lists.conversations_html(
            tab.language, listed, tab.conversation_id, running, searched=bool(tab.search.strip())
        )

    def documents(self, tab: Tab, conversation: Conversation | None) -> str:
        """The list of documents with the files on their way."""
        return lists.documents_html(
            tab.language,
            self._services.library.documents(),
            conversation.document_ids if conversation else (),
            self._jobs.rows(tab.conversation_id),
            self._newest_trace(tab.conversation_id),
        )

    def top(self, tab: Tab, conversation: Conversation | None) -> str:
        """The line over the chat."""
        title = conversation.title if conversation else ""
        has_chat = conversation is not None
        return panel.top_html(tab.language, title, self._machine(), has_chat=has_chat)

    def status(self, tab: Tab) -> str:
        """The strip that tells how far the model is."""
        options = self._options
        return status_html(
            tab.language,
            self._services.engine.status,
            options.switch,
            to_demo=options.can_use_demo,
            is_saved=options.is_saved_model,
        )

    def labels(self, tab: Tab) -> Updates:
        """Everything that depends on the language only."""
        return {
            "new": panel.new_chat_html(tab.language),
            "titles": panel.titles_html(tab.language),
            "upload": panel.upload_html(tab.language, self._services.settings.max_upload_mb),
            "settings": self.settings(tab),
            "search": panel.search_html(tab.language, tab.search),
            "foot": panel.foot_html(tab.language, self._user),
            "tabs": panel.tabs_html(tab.language),
            "status": self.status(tab),
            "words": panel.words_html(tab.language),
        }

    def box(self, tab: Tab) -> Any:
        """The box with Send, or Stop in its place; its text stays as it is."""
        is_running = self._desk.running(tab.conversation_id) is not None
        words = tr(tab.language, "box.placeholder")
        return gr.update(submit_btn=not is_running, stop_btn=is_running, placeholder=words)

    def conversation(self, conversation_id: str) -> Conversation | None:
        """The chat of this id, or None if there is none (any more)."""
        if not conversation_id:
            return None
        try:
            return self._services.store.load(conversation_id)
        except InputError:
            return None

    def _traces(
        self, tab: Tab, conversation: Conversation | None, live: LiveReply | None
    ) -> dict[str, PromptTrace]:
        turns = settled_turns(conversation, live)
        turns = turns[first_shown(len(turns), tab.shown) :]
        found = ((turn.id, self._services.store.load_trace(turn.id)) for turn in turns)
        return {turn_id: trace for turn_id, trace in found if trace is not None}

    def _newest_trace(self, conversation_id: str) -> PromptTrace | None:
        newest = self._services.store.last_turns(conversation_id, 1) if conversation_id else ()
        return self._services.store.load_trace(newest[-1].id) if newest else None

    def _versions(self, conversation: Conversation | None) -> dict[str, tuple[Version, ...]]:
        return self._services.store.all_versions(conversation.id) if conversation else {}

    def _machine(self) -> Machine:
        engine = self._services.engine
        status = engine.status
        # The info waits for the model, which the page must not.
        if status.state != "ready":
            return Machine(status)
        return Machine(status, engine.info, self._services.chat.budget().window_tokens)

    def _welcome(self, conversation: Conversation | None) -> Welcome:
        machine = self._machine()
        settings = self._services.settings
        is_demo = settings.model == "demo" and not settings.engine_url
        if machine.info:
            is_demo = machine.info.is_demo
        elif machine.status.state == "failed":
            # Nobody has that model; the strip over the box says why.
            is_demo = False
        is_used = bool(conversation and conversation.document_ids)
        is_empty = conversation is None or not conversation.turns
        unused = len(self._services.library.documents()) if is_empty and not is_used else 0
        return Welcome(is_demo, is_used, unused)

    def phase(self) -> str:
        """How far an exchange of the model is; "" while none runs."""
        switch = self._options.switch
        return switch.phase if switch and switch.is_running else ""

    def _is_settled(self) -> bool:
        return self._is_ready() and not self.phase()

    def _is_ready(self) -> bool:
        return self._services.engine.status.state == "ready"
