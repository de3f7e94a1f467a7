"""What a request for a reply does: which conversation it is in, and what is said of it.

Runs in the thread of the reply. Knows no HTTP.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from chatbot.api.errors import ApiError
from chatbot.api.files import Shelf
from chatbot.api.given import NEW, Asked, conversation_of, differing
from chatbot.api.results import Begun
from chatbot.api.shapes import ChatRequest
from chatbot.busy import BEING_ANSWERED
from chatbot.chat_events import ChatEvent
from chatbot.engine.base import SamplingParams
from chatbot.errors import InputError
from chatbot.messages import Conversation, Notice
from chatbot.services import Services
from chatbot.windows import usual_sampling

FAILED = ("error", "memory", "cancelled", "interrupted")


@dataclass(frozen=True, slots=True)
class Plan:
    """One reply to be made for a person."""

    services: Services
    shelf: Shelf
    request: ChatRequest
    asked: Asked

    def run(self, stop: threading.Event) -> Iterator[Begun | ChatEvent]:
        """`Begun`, then the events of the reply. Raises ApiError and what `Chat.reply` raises."""
        wanted = None if self.asked.file_ids is None else self.shelf.resolve(self.asked.file_ids)
        if self.asked.conversation_id:
            yield from self._in_conversation(stop, wanted)
            return
        yield Begun()
        yield from self.services.chat.answer(
            conversation_of(self.asked, wanted or ()),
            self.asked.question,
            stop=stop,
            sampling=self._sampling(),
            max_tokens=self.request.reply_tokens,
        )

    def _in_conversation(
        self, stop: threading.Event, wanted: tuple[str, ...] | None
    ) -> Iterator[Begun | ChatEvent]:
        asked, store, chat = self.asked, self.services.store, self.services.chat
        if chat.is_running(asked.conversation_id):
            # Before anything is changed: what is refused leaves no trace.
            raise InputError(BEING_ANSWERED)
        conversation, notices = self._conversation()
        if wanted is not None and wanted != conversation.document_ids:
            store.set_documents(conversation.id, wanted)
        yield Begun(conversation.id, notices)
        last = conversation.turns[-1] if conversation.turns else None
        again = last is not None and last.finish in FAILED and last.question == asked.question
        sampling, most = self._sampling(), self.request.reply_tokens
        if again:
            # Sent once more since it failed: it takes the place of the failed one.
            yield from chat.retry(conversation.id, stop=stop, sampling=sampling, max_tokens=most)
        else:
            yield from chat.reply(
                conversation.id, asked.question, stop=stop, sampling=sampling, max_tokens=most
            )

    def _conversation(self) -> tuple[Conversation, tuple[Notice, ...]]:
        """The stored conversation, and how what was sent differs from it."""
        asked, store = self.asked, self.services.store
        try:
            found = None if asked.conversation_id == NEW else store.load(asked.conversation_id)
        except InputError:
            found = None
        if found is None:
            return self._begin(), ()
        notices = []
        place = differing(asked, found.turns)
        if place is not None:
            where = (
                "The stored conversation goes on after the messages sent before the question"
                if place == len(asked.earlier)
                else f"Message {place + 1} of those sent before the question is not as it is stored"
            )
            if asked.is_strict:
                sentence = (
                    f"{where}; nothing was stored. Send the messages as they are stored, or leave "
                    "metadata.history out."
                )
                raise ApiError(409, sentence, code="history_differs", param="messages")
            sentence = f"{where}; the stored conversation counts, and only the question was taken."
            notices.append(Notice("history_differs", sentence, {"message": place + 1}))
        if asked.system is not None and asked.system.strip() != (found.system_text or "").strip():
            store.set_system_text(found.id, asked.system)
            notices.append(Notice("system_replaced", "The system text was replaced as sent."))
        return found, tuple(notices)

    def _begin(self) -> Conversation:
        """A new conversation; messages sent before the question become its first turns."""
        asked, store = self.asked, self.services.store
        wanted = "" if asked.conversation_id == NEW else asked.conversation_id
        try:
            if not asked.earlier:
                return store.create_conversation("", asked.system, wanted or None)
            made = store.import_conversation(replace(conversation_of(asked), id=wanted))
        except InputError as error:
            raise ApiError(409, str(error), code="conversation_id_taken") from error
        if wanted and made.id != wanted:
            store.delete(made.id)
            sentence = f"The id {wanted!r} is taken; choose another one."
            raise ApiError(409, sentence, code="conversation_id_taken")
        return made

    def _sampling(self) -> SamplingParams:
        request = self.request
        given: dict[str, Any] = {
            "temperature": request.temperature,
            "top_p": request.top_p,
            "repetition_penalty": request.repetition_penalty,
            "seed": None if request.seed is None else request.seed % (1 << 63),
            "stop": request.stops,
        }
        chosen = {name: value for name, value in given.items() if value is not None}
        return replace(usual_sampling(self.services.chat.settings), **chosen)
