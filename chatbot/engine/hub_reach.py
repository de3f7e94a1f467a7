"""Whether the hub answers at all, asked once and briefly. Knows no model.

The hub's own client tries again for a minute and a half, and writes a line for each try.
"""

from __future__ import annotations

import sys
import threading

ANSWER_S = 5.0
WAIT_S = 8.0
"""Looking up a name has no limit of its own where the name server is away."""


def hub_answers() -> bool:
    """Whether anything answers at the hub's address, by the same way as its client takes.

    Takes `WAIT_S` at most. An answer that refuses is one: the client then says why.
    """
    answers = threading.Event()

    def ask() -> None:
        from huggingface_hub import constants, get_session

        try:
            get_session().head(constants.ENDPOINT, timeout=ANSWER_S)
        except http_errors():
            return
        answers.set()

    thread = threading.Thread(target=ask, name="hub-reach", daemon=True)
    thread.start()
    thread.join(WAIT_S)
    return answers.is_set()


def http_errors() -> tuple[type[Exception], ...]:
    """What the hub's client raises where it is refused, or nothing answers.

    It has changed its library for such requests once.
    """
    from huggingface_hub.errors import HfHubHTTPError

    loaded = (sys.modules.get(name) for name in ("httpx", "httpx2"))
    return HfHubHTTPError, *(library.HTTPError for library in loaded if library is not None)
