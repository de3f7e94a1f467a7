"""The part of `Chat` by which a question comes into its conversation: with all that changes with
it, or nothing has changed. Makes no reply."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, replace

from chatbot.attachments import Attached, attach_message, withdraw
from chatbot.budget import ContextBudget
from chatbot.chat_prompts import ChatPrompts
from chatbot.folding import Folding
from chatbot.messages import Conversation
from chatbot.reply_run import ReplyRun
from chatbot.smaller_prompt import PromptMaker
from chatbot.store_changes import NOTHING, Changes
from chatbot.windows import window_notices


@dataclass(frozen=True, slots=True)
class Asked:
    """A question to a conversation. It takes the place of the turn `replacing`, or is its next."""

    conversation_id: str
    text: str
    replacing: str | None = None
    changes: Changes = NOTHING


class ChatTaking(ChatPrompts):
    """What `Chat` does between a question and its reply."""

    _folding: Folding

    def _take(self, asked: Asked, budget: ContextBudget) -> ReplyRun:
        """Store a question as a running turn, its prompt made.

        Raises BudgetError when it does not fit, and what the store raises; nothing has changed
        then, but for a summary that was due anyway.
        """
        conversation = self._asked_in(asked)
        fits = self.builder.fits(conversation, asked.text, budget)
        cut_off = self._folding.cancel(asked.conversation_id)
        try:
            if self._is_next(asked) and self._fold_job.make_up(conversation, cut_off=cut_off):
                conversation = self._asked_in(asked)
            with ExitStack() as stack:
                attached = Attached()
                if self._library is not None and not fits:
                    attached = attach_message(self._library, asked.text)
                    stack.callback(withdraw, self._library, self._store, attached)
                run = self._begun(asked, conversation, budget, attached)
                stack.pop_all()
                return run
        except BaseException:
            if cut_off:
                self._folding.schedule(asked.conversation_id)
            raise

    def _begun(
        self, asked: Asked, conversation: Conversation, budget: ContextBudget, attached: Attached
    ) -> ReplyRun:
        changes = replace(asked.changes, attached=attached.document_id)
        shown = changes.applied(conversation)
        notices = (
            *window_notices(self._settings, self._engine),
            *self._fold_job.take_notices(asked.conversation_id),
            *attached.notices,
        )
        maker = PromptMaker(
            lambda budget: self.builder.build(shown, asked.text, budget).with_notices(notices),
            self.builder.budget,
        )
        prompt = maker.build(budget)
        turn = self._store.begin_turn(
            asked.conversation_id,
            asked.text,
            replacing=asked.replacing,
            alone=True,
            changes=changes,
        )
        return ReplyRun(turn, prompt, maker)

    def _is_next(self, asked: Asked) -> bool:
        return asked.replacing is None and asked.changes.new is None

    def _asked_in(self, asked: Asked) -> Conversation:
        """The conversation as the prompt sees it: before the turns to be replaced, changed."""
        stored = asked.changes.new or self._store.load(
            asked.conversation_id, before=asked.replacing
        )
        return asked.changes.applied(stored)
