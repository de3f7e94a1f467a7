"""The searchable old turns of all conversations in use. Knows no budget and no prompt."""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections import OrderedDict
from itertools import accumulate

from chatbot.messages import Conversation
from chatbot.recall import RecallIndex
from chatbot.recall_vectors import RecallVectors
from retrieval.types import CountTokens

KEPT_CONVERSATIONS = 16


class RecallIndexes:
    """One `RecallIndex` for each of the conversations that were used last."""

    def __init__(self, count_tokens: CountTokens, vectors: RecallVectors | None = None) -> None:
        self._count_tokens = count_tokens
        self._vectors = vectors
        self._lock = threading.Lock()
        self._indexes: OrderedDict[str, RecallIndex] = OrderedDict()

    def of(self, conversation: Conversation) -> RecallIndex:
        """The index of a conversation, brought up to date."""
        with self._lock:
            index = self._indexes.pop(conversation.id, None) or RecallIndex(
                self._count_tokens, self._vectors, conversation.id
            )
            self._indexes[conversation.id] = index
            while len(self._indexes) > KEPT_CONVERSATIONS:
                self._indexes.popitem(last=False)
        index.sync(conversation.turns)
        return index

    def embed(
        self,
        conversation: Conversation,
        *,
        stop: threading.Event | None = None,
        limit_tokens: int | None = None,
    ) -> None:
        """Make vectors that are missing, up to texts of `limit_tokens` in all; drop those of texts
        that are gone. Takes seconds for a long chat, and longer while
        the model is loaded."""
        if self._vectors is None:
            return
        self.keep_only(conversation)
        texts = self.of(conversation).texts()
        if limit_tokens is not None:
            used = list(accumulate(self._count_tokens(text) for text in texts))
            texts = texts[: bisect_right(used, limit_tokens)]
        self._vectors.embed(conversation.id, texts, stop=stop)

    def keep_only(self, conversation: Conversation) -> None:
        """Drop the texts and vectors of turns that are no longer in the conversation."""
        index = self.of(conversation)
        if self._vectors is not None:
            self._vectors.keep_only(conversation.id, index.texts())

    def forget(self, conversation_id: str) -> None:
        """Drop what is known of a conversation, its vectors as well."""
        with self._lock:
            self._indexes.pop(conversation_id, None)
        if self._vectors is not None:
            self._vectors.forget(conversation_id)
