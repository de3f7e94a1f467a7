"""The way to one server: its addresses, the key, and plain requests. Knows no prompt.

The key is sent to the server's own address and nowhere else, and is in no text that people see.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast
from urllib.parse import urlsplit, urlunsplit

import httpx
import openai

from chatbot.engine.remote_deadline import OverdueError, within
from chatbot.engine.remote_faults import endless, late, typed, unreachable
from chatbot.engine.remote_proxy import is_here
from chatbot.engine.remote_words import whole_body
from chatbot.errors import RemoteError, SettingsError

CONNECT_TIMEOUT_S = 10.0
LOOK_TIMEOUT_S = 20.0
"""For questions about the server itself, which need no model: the longest silence, and below how
long they may take in all."""
WHOLE_ANSWER_S = 60.0
_Client = TypeVar("_Client", openai.OpenAI, openai.AsyncOpenAI)
_Answer = TypeVar("_Answer")
NO_KEY = "none"
"""The client wants a key; servers without keys ignore it."""
_NOTHING_THERE = (404, 405, 410, 501)
HIDDEN_KEY = "[the key]"
_LEAST_HIDDEN = 6
"""A shorter key is also part of words."""


class RemoteClient:
    """Requests to one server. Safe to use from threads; `close` ends them."""

    def __init__(self, url: str, api_key: str | None, *, timeout_s: float) -> None:
        """`timeout_s` is the longest silence before and within a reply."""
        self.base_url, self.root_url, self.shown = addresses(url)
        self._key = _checked(api_key or "") or NO_KEY
        self.timeout_s = timeout_s
        self._timeout = openai.Timeout(timeout_s, connect=min(timeout_s, CONNECT_TIMEOUT_S))
        # Made once: reading all certificates takes longer than many requests.
        self._tls = httpx.create_ssl_context()
        # What is on this machine is asked straight: a proxy would look for it on its own machine.
        self._proxied = not is_here(self.base_url)
        self.openai = _own(
            openai.OpenAI(
                base_url=self.base_url,
                api_key=self._key,
                max_retries=0,
                timeout=self._timeout,
                http_client=openai.DefaultHttpxClient(
                    verify=self._tls, follow_redirects=False, trust_env=self._proxied
                ),
            )
        )
        self._http = httpx.Client(
            headers={"Authorization": f"Bearer {self._key}"},
            timeout=min(LOOK_TIMEOUT_S, timeout_s),
            verify=self._tls,
            trust_env=self._proxied,
        )

    def streaming(self) -> openai.AsyncOpenAI:
        """A client for one reply: cutting it off closes its connection, which frees the server."""
        return _own(
            openai.AsyncOpenAI(
                base_url=self.base_url,
                api_key=self._key,
                max_retries=0,
                timeout=self._timeout,
                # Prompts go to no other server than the one that was named.
                http_client=openai.DefaultAsyncHttpxClient(
                    verify=self._tls, follow_redirects=False, trust_env=self._proxied
                ),
            )
        )

    def ask(self, path: str, body: dict[str, Any] | None = None) -> dict[str, Any] | None:
        """JSON from an address beside /v1, such as "/tokenize"; None where there is none such.

        With a `body` it is a POST. Raises NoAnswerError when nobody answers.
        """
        answer = self._asked(path, body)
        if answer.status_code != 200:
            return None
        try:
            found = answer.json()
        except ValueError:  # also a number of more digits than Python reads
            return None
        return cast(dict[str, Any], found) if isinstance(found, dict) else None

    def is_loading(self) -> bool:
        """Whether a server is there whose model is not yet. Raises NoAnswerError."""
        return self._asked("/health", None).status_code == 503

    def _asked(self, path: str, body: dict[str, Any] | None) -> httpx.Response:
        url = self.root_url + path
        for may_fail in (True, False):
            try:
                if body is None:
                    return self.whole(lambda: self._http.get(url))
                return self.whole(lambda: self._http.post(url, json=body))
            except (httpx.ReadTimeout, httpx.WriteTimeout) as error:
                raise late(self.shown) from error
            except httpx.TransportError as error:
                # A server closes connections that were idle; the next one is new.
                if not may_fail:
                    raise unreachable(self.shown, error) from error
        raise AssertionError("a loop without an end")

    def whole(self, call: Callable[[], _Answer], *, more_s: float = 0.0) -> _Answer:
        """What `call` asks the server. Raises NoAnswerError where the answer does not end in time:
        after `WHOLE_ANSWER_S` and the time that a model may take for it."""
        try:
            return within(WHOLE_ANSWER_S + more_s, call)
        except OverdueError as error:
            raise endless(self.shown, WHOLE_ANSWER_S + more_s) from error

    def models(self, *, silence_s: float = LOOK_TIMEOUT_S) -> list[dict[str, Any]]:
        """What the server says about each of its models. Raises RemoteError."""
        try:
            options: Any = {"timeout": silence_s}
            answer = self.whole(
                lambda: self.openai.get("/models", cast_to=httpx.Response, options=options)
            )
            found = answer.json()
        except openai.APIStatusError as error:
            if error.status_code < 400 or error.status_code in _NOTHING_THERE:
                raise self._no_such_server() from error
            raise self.typed(error) from error
        except openai.APIError as error:
            raise self.typed(error) from error
        except ValueError as error:
            raise self._no_such_server() from error
        listed = found.get("data") if isinstance(found, dict) else found
        if listed is None and isinstance(found, dict):
            return []
        if not isinstance(listed, list) or not all(isinstance(one, dict) for one in listed):
            raise self._no_such_server()
        return [one for one in listed if isinstance(one.get("id"), str)]

    def typed(
        self, error: Exception, *, model: str = "", began: bool = False, text_came: bool = False
    ) -> RemoteError:
        """The error of ours for what the client raised, without the key, which some servers say
        back. See `remote_faults.typed`."""
        if isinstance(error, openai.APIError):
            error.body = whole_body(error)
        if len(self._key) >= _LEAST_HIDDEN:
            error.args = tuple(_hidden(part, self._key) for part in error.args)
            if isinstance(error, openai.APIError):
                error.message = _hidden(error.message, self._key)
                error.body = _hidden(error.body, self._key)
        return typed(error, server=self.shown, model=model, began=began, text_came=text_came)

    def _no_such_server(self) -> RemoteError:
        return RemoteError(
            f"What answers at {self.shown} does not list models as an OpenAI-compatible server "
            "does; correct --engine-url."
        )

    def close(self) -> None:
        """Close all connections. Idempotent."""
        self.openai.close()
        self._http.close()


def addresses(url: str) -> tuple[str, str, str]:
    """The address of /v1, the address beside it, and what people may see of it.

    Raises SettingsError for what is no address of a web server.
    """
    try:
        parts = urlsplit(url.strip())
        # httpx looks closer, and asks it of every request.
        _ = parts.port, httpx.URL(urlunsplit(parts))
    except (ValueError, httpx.InvalidURL) as error:
        raise SettingsError(
            "engine_url must be an address such as http://host:8000/v1; a user's name or password "
            "in it has %40 for @, %2F for /, %3A for :, %23 for # and %3F for ?."
        ) from error
    if parts.scheme not in ("http", "https") or not parts.hostname:
        given = url.rpartition("@")[2]  # never a password
        raise SettingsError(
            f"engine_url must be an address such as http://host:8000/v1, not {given!r}."
        )
    path = parts.path.rstrip("/")
    root = path.removesuffix("/v1")
    own = path if path.endswith("/v1") or (path and "/v" in path) else f"{path}/v1"
    host = parts.netloc.rpartition("@")[2]
    return (
        urlunsplit((parts.scheme, parts.netloc, own, "", "")),
        urlunsplit((parts.scheme, parts.netloc, root, "", "")),
        f"{parts.scheme}://{host}{path}",
    )


def _checked(key: str) -> str:
    """A key without blanks around it, such as the end of a file's line. Raises SettingsError."""
    key = key.strip()
    if not all("!" <= letter <= "~" for letter in key):
        raise SettingsError(
            "The API key has a blank or a letter that no key can have; copy it anew into "
            "CHATBOT_API_KEY or --api-key."
        )
    return key


def _hidden(value: Any, key: str) -> Any:
    """The same without the key, wherever it stands."""
    if isinstance(value, str):
        return value.replace(key, HIDDEN_KEY)
    if isinstance(value, dict):
        return {name: _hidden(one, key) for name, one in value.items()}
    return [_hidden(one, key) for one in value] if isinstance(value, list) else value


def _own(client: _Client) -> _Client:
    """Without the organisation and the project that the environment names for OpenAI itself."""
    client.organization = None
    client.project = None
    return client
