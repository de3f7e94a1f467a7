"""Who asks from a script, and the answer that they get. Knows no page.

A script says who it is by a key of the API, or by the cookie of a login as a browser does. With a
key it reaches what is here and nothing else of the page.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from chatbot.api.app import Api
from chatbot.api.keys import PREFIX, Key
from chatbot.services import Services
from chatbot.ui import endpoints
from chatbot.ui.people import People

# All that a key opens beside /v1: the tools, the description of the endpoints, the queue. Behind
# it, what belongs to a page asks for the cookie of a session.
_ROUTES = (
    "/mcp", "/config", "/gradio_api/info", "/gradio_api/queue/join", "/gradio_api/queue/data",
)  # fmt: skip
_UNDER = ("/gradio_api/call/", "/gradio_api/heartbeat/")
KEY_HINT = (
    " A script sends 'Authorization: Bearer KEY', with a key made by 'python -m chatbot key add "
    "NAME --user USER' while the page runs with --api."
)

Answer = Callable[[Services, str, str], dict[str, Any]]


def is_for_scripts(path: str) -> bool:
    """Whether a key counts on a route."""
    return path in _ROUTES or path.startswith(_UNDER)


class Scripts:
    """Answers scripts, each with the chats and documents of its own person."""

    def __init__(self, people: People, api: Api | None) -> None:
        """Without `api` there are no keys; then cookies count alone."""
        self._people = people
        self._api = api

    def key_of(self, headers: Mapping[str, str]) -> Key | None:
        """The key that a request brings; None if it brings none of ours.

        Raises ApiError for one that is wrong.
        """
        given = headers.get("authorization", "")
        scheme, _, text = given.partition(" ")
        # Proxies add tokens of their own to what a browser sends.
        is_ours = scheme.lower() == "bearer" and text.strip().startswith(PREFIX)
        if self._api is None or not is_ours or not self._api.keys_are_needed:
            return None
        return self._api.key_of(given)

    def answer(
        self, ask: Answer, headers: Mapping[str, str], session: str, given: tuple[str, str]
    ) -> dict[str, Any]:
        """What `ask` says to a question and the id of a conversation, within the key's limits.

        `session` names the tab or client that hears of it; "" for none. Raises InputError for
        nobody, ApiError at a limit, and what `ask` raises.
        """
        key = self.key_of(headers)
        if key is None or self._api is None:
            handlers = self._people.of(headers.get("cookie", ""), session)
            return ask(handlers.services, *given)
        with self._api.counted(key, is_reply=ask is endpoints.ask):
            answer = ask(self._people.services_of(key.user, session), *given)
            usage = answer.get("usage") or {}
            self._api.spend(key, usage.get("prompt_tokens", 0) + usage.get("completion_tokens", 0))
            return answer
