"""Where two states of a conversation differ. Pure; compares ids, not texts."""

from __future__ import annotations

from collections.abc import Sequence

from chatbot.messages import Turn


def common_front(old: Sequence[Turn], new: Sequence[Turn]) -> int:
    """How many turns two conversations have in common from their beginning."""
    same = 0
    for mine, other in zip(old, new, strict=False):
        # Mostly the very same object, which spares the comparison of a long chat.
        if mine is not other and (mine.id, mine.message_ids) != (other.id, other.message_ids):
            break
        same += 1
    return same
