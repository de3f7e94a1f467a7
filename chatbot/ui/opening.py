"""How the page's library opens its server: past proxies, and at whatever speed the machine has.

Knows no page and no setting.
"""

from __future__ import annotations

import os
import threading
import time
from typing import Any
from urllib.request import getproxies, getproxies_environment

import gradio as gr
from gradio import http_server
from gradio.exceptions import ServerFailedToStartError

LOCAL_NAMES = ("127.0.0.1", "localhost", "::1")
_POLL_S = 0.01


def open_server(page: gr.Blocks, *, host: str, port: int, options: dict[str, Any]) -> str:
    """Start the server of a page and return its address. Raises what the library raises."""
    spare_own_addresses(host)
    http_server.Server.run_in_thread = _run_until_started
    # _frontend: the library's own look whether the page can be reached. It takes a machine that
    # needs three seconds for an answer for one without a network, and asks for a tunnel to it.
    name = f"[{host}]" if ":" in host else host
    address = page.launch(server_name=name, server_port=port, _frontend=False, **options)[1]
    return str(address)


def spare_own_addresses(host: str) -> None:
    """Ask this machine itself without a proxy, from now on and in this whole process.

    The library asks its own server as it starts, and the environment's proxy, which many
    companies set, would look for that address on the proxy's machine.
    """
    proxies = getproxies()
    spared = [name.strip() for name in proxies.pop("no", "").split(",") if name.strip()]
    if not proxies or "*" in spared:
        return
    if not getproxies_environment():
        # Those of the system count only as long as the environment says nothing at all.
        os.environ.update({f"{scheme}_proxy": url for scheme, url in proxies.items()})
    together = ",".join(dict.fromkeys((*spared, *LOCAL_NAMES, host)))
    # Programs differ in which of the two they read.
    os.environ["no_proxy"] = os.environ["NO_PROXY"] = together


def _run_until_started(server: http_server.Server) -> None:
    """The library's own gives up after five seconds, and then says that no port is free."""
    server.thread = threading.Thread(target=server.run, daemon=True)
    server.thread.start()
    while not server.started:
        if not server.thread.is_alive():
            raise ServerFailedToStartError("The server ended as it started.")
        time.sleep(_POLL_S)
