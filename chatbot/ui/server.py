"""Opens the page: settings of the server, and nothing that leaves this machine."""

from __future__ import annotations

import os
import shutil
import time
from dataclasses import dataclass
from typing import Any

# No questions to the network about the library itself (read when it is imported), and no
# statistics of its events, which take a data frame's time after each of them.
QUIET = {"GRADIO_ANALYTICS_ENABLED": "False", "GRADIO_ANALYTICS_CACHE_FREQUENCY": "1000000000"}
os.environ.update(QUIET)

import gradio as gr
from starlette.middleware import Middleware

from chatbot.errors import SettingsError
from chatbot.services import Services
from chatbot.ui.handlers import Handlers
from chatbot.ui.inbox import Inbox
from chatbot.ui.page import build_page, head, stylesheet, theme
from chatbot.ui.security import Guard, require_loopback

MIB = 1 << 20
LOCAL_NAMES = ("127.0.0.1", "localhost", "::1")


@dataclass(slots=True)
class Handle:
    """A page that is open. `close` ends it; the services stay the caller's."""

    url: str
    _page: gr.Blocks
    _handlers: Handlers
    _inbox: Inbox

    def close(self) -> None:
        """Stop replies and uploads, and free the port. Idempotent."""
        self._handlers.close()
        if self._page.is_running:
            # Open pages hold their connections for as long as they are shown.
            self._page.server.force_exit = True
        self._page.close(verbose=False)
        self._inbox.close()


def launch(services: Services, *, port: int | None = None, block: bool = False) -> Handle:
    """Open the page on `port` (0 takes a free one, None the setting's) and return its handle.

    Raises SettingsError for an address outside this machine or a port that is taken.
    """
    settings = services.settings
    require_loopback(settings.host)
    port = settings.port if port is None else port
    data_dir = settings.data_dir
    # The library's own folder for files; nothing is served from it.
    os.environ.update(QUIET)
    os.environ["GRADIO_TEMP_DIR"] = str(data_dir / "gradio")
    shutil.rmtree(data_dir / "gradio", ignore_errors=True)
    inbox = Inbox(data_dir / "incoming", settings.max_upload_mb * MIB)
    handlers = Handlers(services, inbox)
    page = build_page(handlers)
    page.queue(max_size=None, default_concurrency_limit=None, api_open=False)
    hosts = (*LOCAL_NAMES, settings.host.lower())
    guard = Middleware(Guard, hosts=hosts, upload=inbox)
    try:
        _, url, _ = page.launch(
            server_port=port or free_port(settings.host), **_options(settings.host, guard)
        )
    except OSError as error:
        handlers.close()
        inbox.close()
        raise SettingsError(
            f"Port {port} is taken by another program; choose another one with --port, or "
            "--port 0 for any free one."
        ) from error
    handle = Handle(url.rstrip("/") + "/", page, handlers, inbox)
    if block:
        _wait(handle)
    return handle


def serve(services: Services) -> None:
    """Open the page, print its address, and stay until Ctrl-C."""
    handle = launch(services)
    print(f"Open {handle.url} in your browser. Ctrl-C ends the program.", flush=True)
    _wait(handle)


def free_port(host: str) -> int:
    """A port that nothing listens on."""
    import socket

    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.bind((host, 0))
        number: int = probe.getsockname()[1]
        return number


def _wait(handle: Handle) -> None:
    try:
        while True:
            time.sleep(3600)
    except KeyboardInterrupt:
        pass
    finally:
        handle.close()


def _options(host: str, guard: Middleware) -> dict[str, Any]:
    return {
        "server_name": host,
        "share": False,
        "quiet": True,
        "prevent_thread_lock": True,
        "show_error": True,
        "footer_links": [],
        "run_history": False,
        "enable_monitoring": False,
        "ssr_mode": False,
        "pwa": False,
        "mcp_server": False,
        "max_file_size": 1,
        "app_kwargs": {"middleware": [guard]},
        "css": stylesheet(),
        "head": head(),
        "theme": theme(),
    }
