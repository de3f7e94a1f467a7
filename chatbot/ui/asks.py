"""Questions of the page's script, answered with texts or HTML. Changes nothing.

They come past the events of the page and without its session, so that each claim is checked here.
"""

from __future__ import annotations

import json
from base64 import b64encode
from contextlib import suppress

from chatbot.errors import ChatbotError
from chatbot.export_markdown import as_markdown
from chatbot.export_messages import export_conversation
from chatbot.messages import Conversation, Turn
from chatbot.regression.record import case_from
from chatbot.services import Services
from chatbot.ui.calls import Call, language_of, text_of
from chatbot.ui.export import file_name
from chatbot.ui.i18n import tr
from chatbot.ui.machine_html import live_html
from chatbot.ui.panel import draft_meter_html
from chatbot.ui.prompt_html import trace_html
from chatbot.ui.screen import Screen
from chatbot.ui.source_html import has_picture, source_html
from retrieval.types import Citation, RetrievalError

MAX_DRAFT_CHARACTERS = 200_000
WARM_TURNS = 100


class Asks:
    """Answers for the page's script."""

    def __init__(self, services: Services, screen: Screen) -> None:
        self._services = services
        self._screen = screen

    def trace(self, call: Call) -> str:
        """The pieces of one turn's prompt as HTML."""
        language = language_of(call)
        trace = self._services.store.load_trace(call.id("turn")) if self._turn(call) else None
        if trace is None:
            return f'<p class="none">{tr(language, "trace.none")}</p>'
        return trace_html(language, trace)

    def reply_text(self, call: Call) -> str:
        """The reply of a turn as the model wrote it, to be copied."""
        turn = self._turn(call)
        return turn.reply if turn else ""

    def question_text(self, call: Call) -> dict[str, object]:
        """The question of a turn as it was typed, and how many turns come after it."""
        conversation = self._screen.conversation(call.conversation_id)
        turns = conversation.turns if conversation else ()
        ids = [turn.id for turn in turns]
        if call.id("turn") not in ids:
            return {}
        at = ids.index(call.id("turn"))
        text = "\n\n".join(message.content for message in turns[at].user)
        return {"text": text, "later": len(turns) - at - 1}

    def summary_text(self, call: Call) -> str:
        """The summary as it is, to be edited."""
        conversation = self._screen.conversation(call.conversation_id)
        return conversation.summary.text if conversation and conversation.summary else ""

    def export(self, call: Call) -> dict[str, str]:
        """The chat as a file: Markdown to read, JSON to read back."""
        if self._screen.conversation(call.conversation_id) is None:
            return {}
        whole = self._services.store.load_whole(call.conversation_id)
        if call.data.get("format") == "json":
            text = json.dumps(export_conversation(whole), ensure_ascii=False, indent=1)
            return {"name": file_name(whole, "json"), "text": text + "\n"}
        return {"name": file_name(whole, "md"), "text": as_markdown(whole, language_of(call))}

    def case(self, call: Call) -> dict[str, str]:
        """The chat as a case of a regression suite, to be edited by hand."""
        conversation = self._screen.conversation(call.conversation_id)
        if conversation is None:
            return {}
        return {"name": file_name(conversation, "yaml"), "text": case_from(conversation)}

    def machine(self, call: Call) -> str:
        """What memory takes at this moment, as HTML."""
        return live_html(language_of(call), self._screen.figures(), self._screen.titles())

    def meter(self, call: Call) -> str:
        """What sending the draft would take of the prompt, and what would be left out; "" while
        that cannot be told."""
        language = language_of(call)
        draft = text_of(call)
        if self._services.engine.status.state != "ready" or len(draft) > MAX_DRAFT_CHARACTERS:
            return ""
        if not draft.strip():
            return self._screen.meter(language, call.conversation_id)
        chat = self._services.chat
        conversation = self._screen.conversation(call.conversation_id) or Conversation("")
        try:
            budget = chat.budget()
            if not chat.builder.fits(conversation, draft, budget):
                tokens = chat.builder.encoder.count(draft)
                return draft_meter_html(language, None, tokens, budget.limit_tokens)
            trace = chat.builder.build(conversation, draft, budget).trace
        except (ChatbotError, RetrievalError) as error:
            return draft_meter_html(language, None, 0, 0, str(error))
        return draft_meter_html(language, trace, trace.prompt_tokens, trace.limit_tokens)

    def warm(self, call: Call) -> str:
        """Build what recall needs of a long chat that was opened, so that the first question in
        it waits for nothing. Answers nothing."""
        conversation = self._screen.conversation(call.conversation_id)
        is_ready = self._services.engine.status.state == "ready"
        if is_ready and conversation and len(conversation.turns) >= WARM_TURNS:
            with suppress(ChatbotError, RetrievalError):
                self._services.chat.context(conversation.id, conversation.turns[-1].question)
        return ""

    def source(self, call: Call) -> str:
        """The page of a document with the words of a citation marked in it."""
        language, citation = language_of(call), self._citation(call)
        if citation is None:
            return ""
        try:
            text = self._services.library.document_text(citation.document_id)
            spans = self._services.library.page_spans(citation.document_id)
        except RetrievalError:
            return source_html(language, citation, None)
        return source_html(language, citation, text, spans)

    def picture(self, call: Call) -> str:
        """The page of a citation in a PDF, its words marked, as the address of a picture; "" if
        it cannot be drawn."""
        citation = self._citation(call)
        if citation is None or citation.page is None or not has_picture(citation):
            return ""
        library = self._services.library
        drawn = library.page_picture(citation.document_id, citation.page, citation.quote)
        return f"data:image/png;base64,{b64encode(drawn).decode()}" if drawn else ""

    def _citation(self, call: Call) -> Citation | None:
        """The source of a turn that the page means by its number."""
        turn, number = self._turn(call), call.data.get("number")
        if turn is None or not isinstance(number, int):
            return None
        best = [turn.best_sentence] if turn.best_sentence else []
        citations = [*best, *turn.citations]
        return citations[number] if 0 <= number < len(citations) else None

    def _turn(self, call: Call) -> Turn | None:
        conversation = self._screen.conversation(call.conversation_id)
        turns = conversation.turns if conversation else ()
        return next((turn for turn in turns if turn.id == call.id("turn")), None)
