"""From a conversation and a question to a prompt: what is searched, and what may go in.

The one place where retrieval, recall and the budget meet. Calls no model
but the one that makes vectors.
"""

from __future__ import annotations

import threading
from dataclasses import replace

import prompts
from chatbot.assemble import AssembledPrompt, assemble
from chatbot.budget import Candidates, ContextBudget, check_required, context_budget
from chatbot.engine.base import ChatTokenizer
from chatbot.fact_recall import FactRecall
from chatbot.fold_prompt import trim_to_cap
from chatbot.found_passages import Found, found_passages
from chatbot.language import Language, detect
from chatbot.long_question import LEAST_ROOM_TOKENS, is_long, shorten_question
from chatbot.messages import Conversation, Notice
from chatbot.prompt_pieces import PromptRequest, passages_frame_tokens
from chatbot.query import search_query
from chatbot.recall_vectors import RecallVectors
from chatbot.recalling import Recaller
from chatbot.render import PieceEncoder
from chatbot.settings import Settings
from retrieval.pipeline import Library
from retrieval.types import IndexAwayError

SUMMARY_SLACK = 1.5
QUERY_CHARACTERS = 4000
"""A longer question is searched by its beginning and end."""


class PromptBuilder:
    """Builds the prompts of all conversations with one tokenizer. Safe to use from threads."""

    def __init__(
        self,
        tokenizer: ChatTokenizer,
        settings: Settings,
        library: Library | None,
        *,
        vectors: RecallVectors | None = None,
    ) -> None:
        self.encoder = PieceEncoder(tokenizer)
        self._settings = settings
        self._library = library
        self._recaller = Recaller(settings, self.encoder.count, vectors)
        self._facts = FactRecall(self.encoder.count)

    def change_settings(self, settings: Settings) -> None:
        """Build the next prompts with others; what is known of old turns stays."""
        self._settings = settings
        self._recaller.change_settings(settings)

    def budget(self, window_tokens: int, reply_tokens: int | None = None) -> ContextBudget:
        """The budget of a window under the present settings; `reply_tokens` is room for a reply
        that somebody wants otherwise."""
        s = self._settings
        return context_budget(
            window_tokens,
            s.reply_tokens if reply_tokens is None else reply_tokens,
            passage_share=s.passage_share,
            recall_share=s.recall_share,
            min_recent_turns=s.min_recent_turns,
        )

    def build(
        self, conversation: Conversation, question: str, budget: ContextBudget
    ) -> AssembledPrompt:
        """The prompt for `question` after the turns of `conversation`.

        A long question that does not fit keeps its head and tail, and the notice says so. Raises
        BudgetError when even that does not fit, or the system text is what is too long.
        """
        conversation = self._capped(conversation)
        language = self.language_of(conversation, question)
        system_text = self.system_text(conversation, language)
        shown, notices = self._fitting(question, system_text, language, budget)
        asked = _for_search(question)
        query = search_query(asked, conversation.turns)
        unfolded = self._unfolded_tokens(conversation, budget)
        room = budget.limit_tokens - self._required_tokens(shown, system_text)
        room -= passages_frame_tokens(language, self.encoder)
        try:
            found = found_passages(
                self._library,
                self._settings,
                query,
                conversation.document_ids,
                budget=budget,
                free_tokens=room - unfolded,
            )
        except IndexAwayError as error:
            found = Found(notices=(Notice("documents_away", str(error)),))
        recalled = self._recaller.recalled(
            conversation,
            asked,
            query,
            budget=budget,
            unfolded_tokens=unfolded,
            has_passages=bool(found.passages),
        )
        excerpts = recalled.excerpts
        if self._settings.recall_share > 0:
            excerpts = self._facts.beside(conversation, asked, excerpts, language=language)
        request = PromptRequest(
            conversation=conversation,
            question=shown,
            system_text=system_text,
            language=language,
            budget=recalled.budget,
            query=query,
            excerpts=excerpts,
            standing=recalled.standing,
            passages=found.passages,
            whole_scope=found.whole_scope,
            searched_documents=found.searched,
            notices=(*notices, *found.notices),
        )
        return assemble(request, self.encoder)

    def _capped(self, conversation: Conversation) -> Conversation:
        """A summary from elsewhere may be longer than ours are: its first whole sentences stay.

        Our own may exceed the cap a little when another tokenizer counts it.
        """
        summary, cap = conversation.summary, self._settings.summary_tokens
        if summary is None or self.encoder.count(summary.text) <= SUMMARY_SLACK * cap:
            return conversation
        text = trim_to_cap(summary.text, cap, self.encoder.count)
        kept = replace(summary, text=text) if text else None
        return replace(conversation, summary=kept)

    def fits(self, conversation: Conversation, question: str, budget: ContextBudget) -> bool:
        """Whether the question fits a prompt whole. Raises BudgetError where no part of it may."""
        language = self.language_of(conversation, question)
        system_text = self.system_text(conversation, language)
        if self._fits(question, system_text, budget):
            return True
        if not self._may_shorten(question, system_text, language, budget):
            system, asked = self.encoder.system(system_text), self.encoder.question(question)
            check_required(budget, Candidates(system.segment.tokens, asked.segment.tokens))
        return False

    def language_of(self, conversation: Conversation, question: str) -> Language:
        """The language of the labels: that of the first question, so that it stays the same."""
        if self._settings.language != "auto":
            return self._settings.language
        first = next((t.question for t in conversation.turns if t.question.strip()), question)
        return detect(first)

    def system_text(self, conversation: Conversation, language: str) -> str:
        """The system text of a conversation: its own, the user's, or the built-in one."""
        own = conversation.system_text or self._settings.system_prompt
        return own if own is not None else prompts.load("system", language)

    def embed(
        self,
        conversation: Conversation,
        budget: ContextBudget,
        *,
        stop: threading.Event | None = None,
        limit_tokens: int | None = None,
    ) -> None:
        """Make vectors for turns that have none yet, so that recall finds them by meaning; only
        from when on some turns may be missing from the prompt.

        Takes seconds; a prompt never waits for it. Ends early when `stop` is set.
        """
        if self.leaves_turns_out(conversation, budget):
            self._recaller.embed(conversation, stop=stop, limit_tokens=limit_tokens)

    def leaves_turns_out(self, conversation: Conversation, budget: ContextBudget) -> bool:
        """Whether turns may be missing from a prompt: some are folded, or not all have room."""
        if conversation.summary and conversation.summary.covers:
            return True
        return self._unfolded_tokens(conversation, budget) > budget.limit_tokens

    def keep_only(self, conversation: Conversation) -> None:
        """Drop what is kept of turns that are no longer in the conversation."""
        self.encoder.forget()
        self._recaller.keep_only(conversation)

    def forget(self, conversation_id: str) -> None:
        """Drop what is kept about a conversation; it is made again at need."""
        self.encoder.forget()
        self._recaller.forget(conversation_id)
        self._facts.forget(conversation_id)

    def _required_tokens(self, question: str, system_text: str) -> int:
        """Tokens of what every prompt holds."""
        asked = self.encoder.question(question).segment.tokens
        return asked + self.encoder.system(system_text).segment.tokens

    def _fits(self, question: str, system_text: str, budget: ContextBudget) -> bool:
        return self._required_tokens(question, system_text) <= budget.limit_tokens

    def _unfolded_tokens(self, conversation: Conversation, budget: ContextBudget) -> int:
        """Tokens of the turns that no summary covers, counted no further than the prompt."""
        covered = conversation.summary.covers if conversation.summary else 0
        tokens = 0
        for turn in reversed(conversation.turns[covered:]):
            tokens += self.encoder.turn(turn).tokens
            if tokens > budget.limit_tokens:
                break
        return tokens

    def _fitting(
        self, question: str, system_text: str, language: str, budget: ContextBudget
    ) -> tuple[str, tuple[Notice, ...]]:
        if self._fits(question, system_text, budget):
            return question, ()
        if not self._may_shorten(question, system_text, language, budget):
            return question, ()  # check_required() says by how much it does not fit
        short = shorten_question(
            question,
            # The other half is for passages out of the part that is left out.
            self._question_room(system_text, budget) // 2,
            mark=lambda n: f"\n{prompts.load('left_out', language, tokens=n)}\n",
            count=self.encoder.count,
        )
        text = (
            f"The message has {self.encoder.count(question)} tokens and does not fit the prompt of "
            f"{budget.limit_tokens}: its beginning and end are in the prompt word for word, "
            f"{short.left_out_tokens} tokens between them are not."
        )
        values = {"tokens": self.encoder.count(question), "left_out": short.left_out_tokens}
        return short.text, (Notice("question_shortened", text, values),)

    def _may_shorten(
        self, question: str, system_text: str, language: str, budget: ContextBudget
    ) -> bool:
        usual = self.encoder.system(prompts.load("system", language)).segment.tokens
        tokens = self.encoder.question(question).segment.tokens
        return self._question_room(system_text, budget) >= LEAST_ROOM_TOKENS and is_long(
            tokens, usual_system_tokens=usual, limit_tokens=budget.limit_tokens
        )

    def _question_room(self, system_text: str, budget: ContextBudget) -> int:
        return budget.limit_tokens - self._required_tokens("", system_text)


def _for_search(question: str) -> str:
    if len(question) <= QUERY_CHARACTERS:
        return question
    half = QUERY_CHARACTERS // 2
    return f"{question[:half]}\n{question[-half:]}"
