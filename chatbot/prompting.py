"""From a conversation and a question to a prompt: what is searched, and what may go in.

The one place where retrieval, recall and the budget meet. Calls no model.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

import prompts
from chatbot.assemble import AssembledPrompt, PromptRequest, assemble
from chatbot.budget import ContextBudget, context_budget
from chatbot.engine.base import ChatTokenizer
from chatbot.excerpts import Excerpt, several_voices
from chatbot.fold_prompt import trim_to_cap
from chatbot.language import Language, detect
from chatbot.long_question import shorten_question
from chatbot.messages import Conversation, Notice
from chatbot.query import leans_on_earlier_turns, search_query
from chatbot.recall import RecallIndexes
from chatbot.render import PieceEncoder
from chatbot.settings import Settings
from retrieval.pipeline import Library
from retrieval.types import Passage

EXCERPT_TOKENS = 4000
SUMMARY_SLACK = 1.5
"""Of excerpts, at most so many tokens are looked at, however large the window is."""
MOVED_SHARE = 0.9
"""Of the share of older turns, what recall gets when the question stands alone."""
QUERY_CHARACTERS = 4000
"""A longer question is searched by its beginning and end."""


@dataclass(frozen=True, slots=True)
class Found:
    """Passages for a question, best first. `whole_scope`: every chunk in scope is among them."""

    passages: tuple[Passage, ...] = ()
    whole_scope: bool = False
    searched: bool = False


class PromptBuilder:
    """Builds the prompts of all conversations with one tokenizer. Safe to use from threads."""

    def __init__(
        self, tokenizer: ChatTokenizer, settings: Settings, library: Library | None
    ) -> None:
        self.encoder = PieceEncoder(tokenizer)
        self._settings = settings
        self._library = library
        self._recall = RecallIndexes(self.encoder.count)

    def budget(self, window_tokens: int) -> ContextBudget:
        """The budget of a window under the present settings."""
        s = self._settings
        return context_budget(
            window_tokens,
            s.reply_tokens,
            passage_share=s.passage_share,
            recall_share=s.recall_share,
            min_recent_turns=s.min_recent_turns,
        )

    def build(
        self, conversation: Conversation, question: str, budget: ContextBudget
    ) -> AssembledPrompt:
        """The prompt for `question` after the turns of `conversation`.

        A question that does not fit keeps its head and tail, and the notice says so. Raises
        BudgetError when even that does not fit beside the system text.
        """
        conversation = self._capped(conversation)
        language = self.language_of(conversation, question)
        system_text = self.system_text(conversation, language)
        shown, notices = self._fitting(question, system_text, language, budget)
        query = search_query(_for_search(question), conversation.turns)
        unfolded = self._unfolded_tokens(conversation, budget)
        room = budget.limit_tokens - self._required_tokens(shown, system_text)
        found = self._passages(query, conversation.document_ids, budget, room - unfolded)
        budget = self._shared(budget, conversation, question, found, unfolded)
        request = PromptRequest(
            conversation=conversation,
            question=shown,
            system_text=system_text,
            language=language,
            budget=budget,
            query=query,
            excerpts=self._excerpts(conversation, query, _for_search(question), budget),
            passages=found.passages,
            whole_scope=found.whole_scope,
            searched_documents=found.searched,
            notices=notices,
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
        """Whether the question fits a prompt whole."""
        language = self.language_of(conversation, question)
        return self._fits(question, self.system_text(conversation, language), budget)

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

    def forget(self, conversation_id: str) -> None:
        """Drop what is kept in memory about a conversation."""
        self._recall.forget(conversation_id)

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

    def _shared(
        self,
        budget: ContextBudget,
        conversation: Conversation,
        question: str,
        found: Found,
        unfolded_tokens: int,
    ) -> ContextBudget:
        """Who gets how much for this question.

        As long as folding keeps up and no passages ride along, all turns since the last fold
        stay, so that the front of the prompt, and with it the cache, is the same from turn to
        turn. Otherwise a question that stands alone needs little of the last turns. So it is in
        transcripts, whose end says no more about the question than any other stretch of them.
        """
        kept_up = unfolded_tokens <= self._settings.fold_high * budget.window_tokens
        front_stays = self._settings.summary != "off" and kept_up and not found.passages
        if front_stays and not several_voices(
            message for turn in conversation.turns for message in (*turn.user, *turn.assistant)
        ):
            return replace(budget, pinned_turns=len(conversation.turns))
        return budget if leans_on_earlier_turns(question) else for_standalone(budget)

    def _fitting(
        self, question: str, system_text: str, language: str, budget: ContextBudget
    ) -> tuple[str, tuple[Notice, ...]]:
        if self._fits(question, system_text, budget):
            return question, ()
        encoder = self.encoder
        room = budget.limit_tokens - encoder.system(system_text).segment.tokens
        room -= encoder.question("", "").segment.tokens
        if room < 32:
            return question, ()  # allocate() says by how much it does not fit
        short = shorten_question(
            question,
            # The other half is for passages out of the part that is left out.
            room // 2,
            mark=lambda n: f"\n{prompts.load('left_out', language, tokens=n)}\n",
            count=encoder.count,
        )
        text = (
            f"The message has {encoder.count(question)} tokens and does not fit the prompt of "
            f"{budget.limit_tokens}: its beginning and end are in the prompt word for word, "
            f"{short.left_out_tokens} tokens between them are not."
        )
        values = {"tokens": encoder.count(question), "left_out": short.left_out_tokens}
        return short.text, (Notice("question_shortened", text, values),)

    def _excerpts(
        self, conversation: Conversation, query: str, question: str, budget: ContextBudget
    ) -> Sequence[Excerpt]:
        if not conversation.turns or self._settings.recall_share <= 0:
            return ()
        found = self._recall.of(conversation).search(
            query, question=question, limit_tokens=min(budget.limit_tokens, EXCERPT_TOKENS)
        )
        if not budget.pinned_turns:
            return found
        # Turns since the last fold are in the prompt whole. What is recalled beside them is read
        # anew each time, so it keeps to its share even where there is room for more.
        covered = conversation.summary.covers if conversation.summary else 0
        folded = [excerpt for excerpt in found if excerpt.position < covered]
        return within(folded, int(self._settings.recall_share * budget.limit_tokens))

    def _passages(
        self, query: str, document_ids: Sequence[str], budget: ContextBudget, free_tokens: int
    ) -> Found:
        """Passages in scope. `free_tokens` is what the turns would leave if all of them came."""
        if self._library is None or not document_ids or self._settings.passage_share <= 0:
            return Found()
        infos = {info.id: info for info in self._library.documents()}
        in_scope = [infos[i] for i in document_ids if i in infos]
        if not in_scope:
            return Found()
        whole = sum(info.tokens for info in in_scope) <= budget.limit_tokens
        share = int(budget.limit_tokens * self._settings.passage_share)
        found = self._library.search(
            query,
            document_ids=document_ids,
            top_k=self._settings.top_k,
            budget_tokens=None if whole else max(free_tokens, share, 1),
        )
        if not whole:
            return Found(tuple(found), searched=True)
        ranked = {passage.chunk_id for passage in found}
        rest = [
            replace(passage, score=0.0)
            for info in in_scope
            for passage in self._library.chunks(info.id)
            if passage.chunk_id not in ranked
        ]
        return Found((*found, *rest), whole_scope=True, searched=True)


def within(excerpts: Sequence[Excerpt], limit_tokens: int) -> list[Excerpt]:
    """The best excerpts, up to `limit_tokens` of text in all."""
    used = list(accumulate(excerpt.tokens for excerpt in excerpts))
    return [e for e, tokens in zip(excerpts, used, strict=True) if tokens <= limit_tokens]


def for_standalone(budget: ContextBudget) -> ContextBudget:
    """The budget of a question that does not lean on the last turns: most of what they would
    get goes to recalled excerpts, which come from the last turns as well if they match."""
    turns_share = max(1.0 - budget.passage_share - budget.recall_share, 0.0)
    if budget.recall_share <= 0:
        return budget
    return replace(
        budget,
        recall_share=budget.recall_share + MOVED_SHARE * turns_share,
        min_recent_turns=min(budget.min_recent_turns, 1),
    )


def _for_search(question: str) -> str:
    if len(question) <= QUERY_CHARACTERS:
        return question
    half = QUERY_CHARACTERS // 2
    return f"{question[:half]}\n{question[-half:]}"
