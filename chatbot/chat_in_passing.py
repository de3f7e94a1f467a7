"""The part of `Chat` that answers in conversations which someone else keeps. Stores nothing.

The prompt is made as for a stored conversation: trimmed to the budget, old turns recalled, what was
left out said in the trace. Nothing is folded, since nothing would remember the summary.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator

from chatbot.answering import Answering
from chatbot.chat_events import ChatEvent
from chatbot.chat_prompts import ChatPrompts
from chatbot.engine.base import SamplingParams
from chatbot.engine.exchange import in_use
from chatbot.errors import InputError
from chatbot.folding import Folding
from chatbot.messages import Conversation, Message, Turn
from chatbot.records import new_id, now_text
from chatbot.reply_run import ReplyRun
from chatbot.smaller_prompt import PromptMaker
from chatbot.windows import window_notices


class Nowhere:
    """Where turns go that nobody wants kept."""

    def finish_turn(self, conversation_id: str, turn: Turn) -> None:
        """Forget it."""


class ChatInPassing(ChatPrompts):
    """What `Chat` has for conversations that are only given."""

    _folding: Folding
    _passing: Answering

    def answer(
        self,
        conversation: Conversation,
        text: str,
        *,
        stop: threading.Event | None = None,
        sampling: SamplingParams | None = None,
        max_tokens: int | None = None,
    ) -> Iterator[ChatEvent]:
        """Answer `text` after a conversation that is in no store; events as of `Chat.reply`.

        Ids of its turns and messages must say what is in them, since what is known of a turn is
        kept by its id. The conversation's id names the cache that the engine may reuse. Raises
        InputError for an empty question or a stop while another model is loaded, and BudgetError
        for a question that does not fit.
        """
        if not text.strip():
            raise InputError("The question is empty; type one first.")
        stop = stop or threading.Event()
        # The counts and tokens of the prompt are those of one model: it stays until the reply ends.
        with in_use(self._engine, stop):
            yield from self._answer_now(
                conversation, text, stop=stop, sampling=sampling, max_tokens=max_tokens
            )

    def _answer_now(
        self,
        conversation: Conversation,
        text: str,
        *,
        stop: threading.Event,
        sampling: SamplingParams | None,
        max_tokens: int | None,
    ) -> Iterator[ChatEvent]:
        notices = window_notices(self._settings, self._engine)
        maker = PromptMaker(
            lambda budget: self.builder.build(conversation, text, budget).with_notices(notices),
            self.builder.budget,
        )
        budget = self.budget(max_tokens)
        prompt = maker.build(budget)
        now = now_text()
        asked = Message(new_id(), "user", text, created=now)
        turn = Turn(new_id(), (asked,), finish="running", created=now)
        params = self._drawn(sampling, budget, max_tokens)
        yield from self._passing.run(
            conversation.id,
            ReplyRun(turn, prompt, maker),
            stop,
            params,
            folding=self._folding,
        )
