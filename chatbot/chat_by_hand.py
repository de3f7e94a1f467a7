"""The part of `Chat` by which users change what is remembered. Knows no model.

All raise InputError, with nothing changed, while the conversation is being answered or when what
they name is not there.
"""

from __future__ import annotations

from chatbot.attachments import forget_attached
from chatbot.fold_job import FoldJob
from chatbot.hands import Hands
from chatbot.messages import Fact, Version
from chatbot.store import Store
from retrieval.pipeline import Library


class ChatByHand:
    """Edits of the summary and facts, forgetting, and versions; see `Hands` for their order."""

    _hands: Hands
    _fold_job: FoldJob
    _store: Store
    _library: Library | None

    def edit_summary(self, conversation_id: str, text: str) -> None:
        """Put the user's words in place of the summary; later folds only add to them."""
        self._hands.edit_summary(conversation_id, text)

    def add_fact(self, conversation_id: str, text: str) -> Fact:
        """Add a line to the facts; it stays until the user deletes it."""
        return self._hands.add_fact(conversation_id, text)

    def edit_fact(self, conversation_id: str, fact_id: str, text: str) -> Fact:
        """Put a fact in the user's words; later folds keep it so."""
        return self._hands.edit_fact(conversation_id, fact_id, text)

    def pin_fact(self, conversation_id: str, fact_id: str, pinned: bool) -> Fact:
        """Let a fact stay however many come after it, or no longer."""
        return self._hands.pin_fact(conversation_id, fact_id, pinned)

    def delete_fact(self, conversation_id: str, fact_id: str) -> None:
        """Take a fact out of the list; no later fold brings it back."""
        self._hands.delete_fact(conversation_id, fact_id)

    def forget_turn(self, conversation_id: str, turn_id: str) -> None:
        """Delete a turn, its versions, and all that was made of it; later turns stay.

        Gone from the database, the summary and facts, what is searched, the cache, traces, and
        the library and the sources of later replies if the message was attached as a document. A
        summary that covered it is made anew from sentences of the other turns. What later turns
        say of it in their own words stays with them.
        """
        attached = self._hands.forget_turn(conversation_id, turn_id)
        self._fold_job.take_notices(conversation_id)  # Their reasons may quote it.
        if self._library is not None:
            forget_attached(self._library, self._store, conversation_id, attached)

    def versions(self, conversation_id: str, turn_id: str) -> tuple[Version, ...]:
        """The questions and replies that stand, or once stood, in the place of a turn."""
        return self._store.versions(conversation_id, turn_id)

    def switch_version(self, conversation_id: str, version_id: str) -> None:
        """Bring back a version with all turns after it, and its summary and facts.

        What stands there now is kept as a version in turn.
        """
        self._hands.switch_version(conversation_id, version_id)
