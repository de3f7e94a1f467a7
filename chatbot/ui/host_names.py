"""By which names the page is reached: the machine's own, those refused, those for other people.

A page of another site can give its own name our address; so a name must be known to count.
"""

from __future__ import annotations

import re
import socket
import threading
from collections.abc import Callable
from urllib.parse import urlsplit

from chatbot.settings import Settings
from chatbot.ui.i18n import pick_language, tr
from chatbot.ui.opening import LOCAL_NAMES

MAX_NAME = 80
MAX_TOLD = 20
"""Whoever makes up names must fill neither the terminal nor the memory."""
_EVERYWHERE = ("0.0.0.0", "::")
# Reserved for documents: a way there is looked for, nothing is sent.
_ELSEWHERE = ("192.0.2.1", 9)


def known_names(settings: Settings) -> frozenset[str]:
    """Names by which a browser may ask for the page."""
    own = socket.gethostname()
    short = own.partition(".")[0]
    names = (settings.host, settings.public_host or "", own, short, f"{short}.local")
    return frozenset((*LOCAL_NAMES, *(name.lower() for name in names if name)))


def shown_name(host: str) -> str:
    """A name that a stranger has sent, fit for a terminal and not endlessly long."""
    return re.sub(r"[^a-z0-9.:_-]", "?", host.lower())[:MAX_NAME]


class Refusals:
    """Says what to do about a name that is not known: to the browser, and once to the terminal."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell
        self._lock = threading.Lock()
        self._told: set[str] = set()

    def of_name(self, host: str, accept_language: str) -> str:
        """What the browser shows that asked for `host`."""
        name = shown_name(host)
        if name and self._is_new(name):
            self._tell(
                f"A browser asked for the chat by the name {name} and was refused. If that name is "
                f"yours, start the chat with --public-host {name}."
            )
        language = pick_language(chosen="", setting="", accept=accept_language)
        return tr(language, "refused.name", name=name or "NAME")

    def _is_new(self, name: str) -> bool:
        with self._lock:
            if name in self._told or len(self._told) >= MAX_TOLD:
                return False
            self._told.add(name)
            return True


def addresses_for_others(settings: Settings, port: int) -> list[str]:
    """Where people on other machines open a page without a proxy; [] if only this one can."""
    if settings.behind_proxy or settings.host in LOCAL_NAMES:
        return []
    if settings.public_host:
        names = [settings.public_host]
    elif settings.host not in _EVERYWHERE:
        names = [settings.host]
    else:
        names = [socket.gethostname(), *_network_address()]
    return [f"http://{f'[{name}]' if ':' in name else name}:{port}/" for name in names]


def _network_address() -> list[str]:
    """This machine's address in its network, if it is in one."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(_ELSEWHERE)
        except OSError:
            return []
        return [str(probe.getsockname()[0])]


def asked_name(host: str) -> str:
    """The host of a Host header without its port, in small letters; "" if it has none."""
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""
