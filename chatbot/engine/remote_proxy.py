"""Whether the environment's proxy stands between us and a server; opens no connection."""

from __future__ import annotations

import os
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from chatbot.loopback import is_loopback


def is_here(url: str) -> bool:
    """Whether the server of an address is on this machine, where no proxy finds it."""
    return is_loopback(urlsplit(url).hostname or "")


def proxy_hint(url: str) -> str:
    """A sentence, behind a blank, that names the variable by which requests to an address go
    through a proxy; "" where they go straight. Never the proxy's address: it may hold a password.
    """
    parts = urlsplit(url)
    if is_here(url) or not parts.hostname or proxy_bypass(parts.hostname):
        return ""
    scheme = next((name for name in (parts.scheme, "all") if getproxies().get(name)), "")
    if not scheme:
        return ""
    name = f"{scheme}_proxy"
    shown = name.upper() if name.upper() in os.environ and name not in os.environ else name
    return (
        f" The request goes through the proxy that {shown} names; if it should not, add "
        f"{parts.hostname} to no_proxy."
    )
