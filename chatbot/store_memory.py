"""The part of the store about what is remembered: summaries, facts, versions, what is forgotten.

Knows no model and no wording. Every method that changes something is one transaction.
"""

from __future__ import annotations

from collections.abc import Sequence

from chatbot import store_branches, store_edits, store_queries, store_summaries, store_turns
from chatbot.errors import InputError
from chatbot.messages import FoldDecision, RollingSummary, Version
from chatbot.records import now_text
from chatbot.store_cache import TurnCache
from chatbot.store_database import Database
from chatbot.store_edits import Change, Scrub, ScrubNotices
from chatbot.store_owner import owns
from chatbot.store_turns import no_such_turn


class MemoryStore:
    """What `Store` has of its own beside conversations and turns."""

    _database: Database
    _known: TurnCache

    def save_summary(
        self, conversation_id: str, summary: RollingSummary, *, last_turn_id: str | None = None
    ) -> bool:
        """Make this the current summary; older versions stay stored.

        `last_turn_id` is the newest turn that it stands for. False, with nothing stored, if the
        conversation no longer has these turns, which may be dropped while a summary is made, or
        if the current one covers as many.
        """
        with self._database.write() as connection:
            if not store_queries.lock_if_there(connection, conversation_id):
                return False
            last = store_summaries.turn_at(connection, conversation_id, summary.covers - 1)
            if last is None or last_turn_id not in (None, last):
                return False
            current = store_summaries.current_summary(connection, conversation_id)
            if current is not None and current.covers >= summary.covers:
                return False  # Another process was quicker.
            store_summaries.insert_summary(connection, conversation_id, summary)
        return True

    def summary_versions(self, conversation_id: str) -> list[RollingSummary]:
        """All versions ever stored, oldest first, also those that no longer hold."""
        with self._database.read() as connection:
            if not owns(connection, conversation_id):
                return []
            return store_summaries.summary_versions(connection, conversation_id)

    def add_fold_decisions(self, conversation_id: str, decisions: Sequence[FoldDecision]) -> None:
        """Keep what was tried when a summary was made. Nothing happens if the chat is gone."""
        with self._database.write() as connection:
            if store_queries.lock_if_there(connection, conversation_id):
                store_summaries.insert_fold_decisions(connection, conversation_id, decisions)

    def fold_decisions(self, conversation_id: str) -> tuple[FoldDecision, ...]:
        """All attempts to make a summary of this conversation, oldest first."""
        with self._database.read() as connection:
            if not owns(connection, conversation_id):
                return ()
            return store_summaries.fold_decisions_of(connection, conversation_id)

    # The user's hands. All raise InputError while a turn of the conversation is being answered.

    def put_summary(self, conversation_id: str, summary: RollingSummary) -> None:
        """Make a summary that the user wrote the current one."""
        with self._database.write() as connection:
            store_queries.lock_conversation(connection, conversation_id)
            store_edits.refuse_running(connection, conversation_id)
            store_summaries.insert_summary(connection, conversation_id, summary)

    def change_summaries(self, conversation_id: str, own: Change, elsewhere: Change) -> None:
        """Change every summary that may become current: of the chat by `own`, of branches by
        `elsewhere`; what `own` makes of an empty one outlasts all folds and edits of turns."""
        with self._database.write() as connection:
            store_queries.lock_conversation(connection, conversation_id)
            store_edits.refuse_running(connection, conversation_id)
            store_edits.change_summaries(connection, conversation_id, own, elsewhere)

    def forget_turn(
        self,
        conversation_id: str,
        turn_id: str,
        *,
        change: Change,
        scrub: Scrub,
        scrub_notices: ScrubNotices,
        rebuilt: RollingSummary | None,
    ) -> frozenset[str]:
        """Delete a turn with its versions and traces of it, see `store_edits.forget_turn`.

        `rebuilt` then stands for the turns that the old summary covered, without this one. Returns
        the names of documents that no message of the conversation is attached as any more.
        """
        with self._database.write() as connection:
            head = store_queries.lock_conversation(connection, conversation_id)
            store_edits.refuse_running(connection, conversation_id)
            gone = store_edits.forget_turn(
                connection,
                conversation_id,
                turn_id,
                change=change,
                scrub=scrub,
                scrub_notices=scrub_notices,
            )
            values = {"edits": head.edits + 1}
            store_queries.update_conversation(connection, conversation_id, values)
            if rebuilt is not None:
                store_summaries.insert_summary(connection, conversation_id, rebuilt)
        self._known.forget(conversation_id)
        self._database.empty_log()
        return gone

    def versions(self, conversation_id: str, turn_id: str) -> tuple[Version, ...]:
        """What stands, or once stood, in the place of a turn, oldest first.

        Raises InputError if the conversation has no such turn.
        """
        with self._database.read() as connection:
            if not owns(connection, conversation_id):
                raise InputError(no_such_turn(turn_id))
            position = store_turns.position_of(connection, conversation_id, turn_id)
            return store_branches.versions_at(connection, conversation_id, position)

    def all_versions(self, conversation_id: str) -> dict[str, tuple[Version, ...]]:
        """`versions` of all turns that have more than one, by the turn that stands there now."""
        with self._database.read() as connection:
            if not owns(connection, conversation_id):
                return {}
            positions = sorted(store_branches.fork_positions(connection, conversation_id))
            found = [store_branches.versions_at(connection, conversation_id, p) for p in positions]
        current = {version.id: group for group in found for version in group if version.is_current}
        return {turn_id: group for turn_id, group in current.items() if len(group) > 1}

    def switch_version(self, conversation_id: str, version_id: str) -> None:
        """Bring back a version with all that followed it; what stands there now is kept."""
        now = now_text()
        with self._database.write() as connection:
            store_queries.lock_conversation(connection, conversation_id)
            store_edits.refuse_running(connection, conversation_id)
            store_branches.bring_back(connection, conversation_id, version_id, now=now)
            store_queries.update_conversation(connection, conversation_id, {"updated": now})
