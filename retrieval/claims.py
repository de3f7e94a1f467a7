"""Files that one process at a time takes in: a protocol for whoever can keep processes apart, and
what one call holds. Knows no database and no document."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack

Claim = Callable[[str], AbstractContextManager[bool]]
"""Given the name of a work, whether it is the caller's until the block is left; False while it is
another's, of this process or of another one. The claim of a process that died is void."""


class Claims:
    """The files that one call has claimed. For one thread."""

    def __init__(self, claim: Claim | None) -> None:
        """`claim` None: nobody else can be there, and everything is the caller's."""
        self._claim = claim
        self._held: dict[str, ExitStack] = {}

    def take(self, document: str) -> bool:
        """Whether the document of this name is the caller's until `let_go`."""
        if self._claim is None:
            return True
        with ExitStack() as stack:
            # A database may bound the length of names, and compare them in a way of its own.
            key = hashlib.sha256(document.encode("utf-8", "surrogatepass")).hexdigest()
            if not stack.enter_context(self._claim(key)):
                return False
            self._held[document] = stack.pop_all()
        return True

    def let_go(self, document: str) -> None:
        """Others may have it. Does nothing where it is not held."""
        held = self._held.pop(document, None)
        if held is not None:
            held.close()

    def close(self) -> None:
        """Let go of everything."""
        for document in list(self._held):
            self.let_go(document)
