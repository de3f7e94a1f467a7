"""What a server's word for the end of a reply means: whole, cut off, or no reply at all. Pure."""

from __future__ import annotations

from chatbot.errors import RemoteError, ServerBusyError
from chatbot.messages import Notice
from chatbot.words import word_groups

_WHOLE, _LENGTH, _FILTERED, _TOOLS, _BROKEN = word_groups("server_endings")


def is_length(reason: str | None) -> bool:
    """Whether the reply met its longest length."""
    return _plain(reason) in _LENGTH


def check_ending(reason: str | None, server: str) -> None:
    """Raises RemoteError where the reply is half, or none, by the server's own word."""
    word = _plain(reason)
    if word in _FILTERED:
        raise RemoteError(
            f"The server {server} did not let the whole reply through ({reason}); ask in other "
            "words."
        )
    if word in _TOOLS:
        raise RemoteError(
            f"The server {server} wanted to call a tool in place of a reply ({reason}); ask again, "
            "or choose another model."
        )
    if word in _BROKEN:
        raise ServerBusyError(f"The server {server} broke the reply off ({reason}); ask again.")


def ending_notices(reason: str | None, text: str) -> list[Notice]:
    """What somebody should know of an end that is no error."""
    if reason is not None and _plain(reason) not in (*_WHOLE, *_LENGTH):
        said = f"The server ended the reply for a reason of its own ({reason}); see if it is whole."
        return [Notice("remote_ended", said, {"reason": reason})]
    if not text.strip():
        return [Notice("remote_empty", "The server's reply has no text; ask again.")]
    return []


def count_notices(
    told: int | None, cached: int, counted: int, *, estimated: bool, odd: int | None
) -> list[Notice]:
    """Where the server's count of the prompt, `told`, or of what was cached contradicts ours.

    `odd` is a count that cannot be.
    """
    notices = []
    if odd is not None:
        text = (
            f"The server says that the prompt has {odd} tokens, which cannot be; the {counted} "
            "that were counted here are taken."
        )
        notices.append(Notice("remote_count_odd", text, {"told": odd, "counted": counted}))
    told = counted if told is None else told
    if told != counted and not estimated:
        text = (
            f"The server counts {told} tokens in the prompt where {counted} were counted here; "
            "counts are taken for estimates from now on."
        )
        notices.append(Notice("remote_count", text, {"told": told, "counted": counted}))
    if cached > told:
        text = (
            f"The server says that {cached} tokens of the prompt were cached, but it has "
            f"{told}; all of them are taken for cached."
        )
        notices.append(Notice("remote_cached", text, {"told": cached, "counted": told}))
    return notices


def _plain(reason: str | None) -> str:
    return (reason or "").lower().replace("-", "_").replace(" ", "_")
