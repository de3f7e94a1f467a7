"""What a request for a reply does: which conversation it is in, and what is said of it.

Runs in the thread of the reply. Knows no HTTP.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from chatbot.api.errors import ApiError
from chatbot.api.files import Shelf
from chatbot.api.given import NEW, Asked, conversation_of, differing
from chatbot.api.results import Begun
from chatbot.api.shapes import ChatRequest
from chatbot.api.undoing import is_refused, undo
from chatbot.busy import BEING_ANSWERED
from chatbot.chat_events import ChatEvent, TurnDone
from chatbot.engine.base import SamplingParams
from chatbot.errors import InputError
from chatbot.messages import Conversation, Notice
from chatbot.records import new_id
from chatbot.services import Services
from chatbot.store_changes import Changes, own_text
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
        asked, chat = self.asked, self.services.chat
        if chat.is_running(asked.conversation_id):
            raise InputError(BEING_ANSWERED)
        found = self._found()
        changes, notices = self._changes(found, wanted)
        conversation = found or changes.new
        assert conversation is not None
        yield Begun(conversation.id, notices)
        last = found.turns[-1] if found and found.turns else None
        again = last is not None and last.finish in FAILED and last.question == asked.question
        # What is sent once more since it failed takes the place of the failed one.
        reply = chat.retry if again else partial(chat.reply, text=asked.question)
        events = reply(
            conversation.id,
            stop=stop,
            sampling=self._sampling(),
            max_tokens=self.request.reply_tokens,
            changes=changes,
        )
        with closing(events):  # type: ignore[type-var]
            for event in events:
                if isinstance(event, TurnDone) and is_refused(event.turn):
                    undo(self.services, conversation.id, found, None if again else event.turn)
                yield event

    def _found(self) -> Conversation | None:
        if self.asked.conversation_id == NEW:
            return None
        try:
            return self.services.store.load(self.asked.conversation_id)
        except InputError:
            return None

    def _changes(
        self, found: Conversation | None, wanted: tuple[str, ...] | None
    ) -> tuple[Changes, tuple[Notice, ...]]:
        """What the request changes in its conversation, once it is taken, and how what was sent
        differs from what is stored. Raises ApiError."""
        asked = self.asked
        if found is None:
            return Changes(new=self._new(wanted or ())), ()
        notices = self._differing(found)
        if wanted == found.document_ids:
            wanted = None
        if asked.system is None or asked.system.strip() == (found.system_text or "").strip():
            return Changes(document_ids=wanted), notices
        told = Notice("system_replaced", "The system text was replaced as sent.")
        return Changes(system_text=asked.system, document_ids=wanted), (*notices, told)

    def _new(self, wanted: tuple[str, ...]) -> Conversation:
        """A new conversation; messages sent before the question become its first turns."""
        asked = self.asked
        given = conversation_of(asked, wanted)
        # Ids that say what is in them may be those of another conversation that began alike.
        turns = tuple(replace(turn, id=new_id()) for turn in given.turns)
        name = new_id() if asked.conversation_id == NEW else asked.conversation_id
        return replace(given, id=name, turns=turns, system_text=own_text(asked.system))

    def _differing(self, found: Conversation) -> tuple[Notice, ...]:
        place = differing(self.asked, found.turns)
        if place is None:
            return ()
        where = (
            "The stored conversation goes on after the messages sent before the question"
            if place == len(self.asked.earlier)
            else f"Message {place + 1} of those sent before the question is not as it is stored"
        )
        if self.asked.is_strict:
            sentence = (
                f"{where}; nothing was stored. Send the messages as they are stored, or leave "
                "metadata.history out."
            )
            raise ApiError(409, sentence, code="history_differs", param="messages")
        sentence = f"{where}; the stored conversation counts, and only the question was taken."
        return (Notice("history_differs", sentence, {"message": place + 1}),)

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
