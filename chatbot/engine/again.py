"""When a load that failed is tried again by itself. Knows no engine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from chatbot.errors import RemoteError, TokenizerError, UntoldContextError, WrongKeyError

FIRST_WAIT_S, MOST_WAIT_S = 1.0, 15.0


def doubling_waits() -> Iterator[float]:
    """Seconds between one try and the next, without an end."""
    wait_s = FIRST_WAIT_S
    while True:
        yield wait_s
        wait_s = min(2 * wait_s, MOST_WAIT_S)


@dataclass(frozen=True, slots=True)
class Again:
    """`may_help` says of what failed whether the same may go well later; `waits` gives the seconds
    before each further try, until it ends."""

    may_help: Callable[[Exception], bool]
    waits: Callable[[], Iterator[float]] = doubling_waits


def server_may_come(error: Exception) -> bool:
    """Whether a server that could not be used may be usable later without a change of settings.

    Whoever asks again and again with a key that is refused may be locked out.
    """
    cause = error.__cause__ if isinstance(error, TokenizerError) else error
    if isinstance(cause, WrongKeyError):
        return False
    return isinstance(cause, RemoteError | UntoldContextError)
