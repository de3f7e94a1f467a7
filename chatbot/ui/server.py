"""Opens the page: settings of the server, and nothing that leaves this machine."""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import gradio as gr
from starlette.middleware import Middleware

from chatbot.api.app import Api
from chatbot.errors import SettingsError
from chatbot.loopback import is_loopback
from chatbot.operations import check_settings, scratch_folder
from chatbot.persons import Persons
from chatbot.services import Services
from chatbot.ui import QUIET
from chatbot.ui.closing import Closing
from chatbot.ui.health import Health
from chatbot.ui.host_names import Refusals, addresses_for_others, known_names
from chatbot.ui.inbox import Inbox
from chatbot.ui.login import Login
from chatbot.ui.look import head, stylesheet, theme
from chatbot.ui.mcp import Mcp
from chatbot.ui.opening import open_server
from chatbot.ui.page import build_page
from chatbot.ui.people import People
from chatbot.ui.scripts import Scripts
from chatbot.ui.security import Guard, require_login
from chatbot.users import UserFile

MIB = 1 << 20


@dataclass(slots=True)
class Handle:
    """A page that is open. `close` ends it; the services stay the caller's."""

    url: str
    _page: gr.Blocks
    _persons: Persons
    _people: People
    _api: Api | None
    _inbox: Inbox
    _closing: Closing

    def close(self) -> None:
        """Stop replies and uploads, and free the port. Idempotent."""
        if self._api is not None:
            self._api.close()
        self._people.close()
        self._closing.set()
        self._page.close(verbose=False)
        self._persons.close()
        self._inbox.close()


def launch(services: Services, *, port: int | None = None, block: bool = False) -> Handle:
    """Open the page on `port` (0 takes a free one, None the setting's) and return its handle.

    Raises SettingsError for an address that others can reach without a login, for a file of users
    that cannot be read, or a port that is taken.
    """
    settings = services.settings
    check_settings(settings)
    login = Login(UserFile(settings.auth).users if settings.auth else None)
    require_login(settings.host, login.is_needed)
    port = usable_port(settings.host, settings.port if port is None else port)
    scratch = scratch_folder(settings)
    # The library's own folder for files; nothing is served from it.
    os.environ.update(QUIET)
    os.environ["GRADIO_TEMP_DIR"] = str(scratch / "gradio")
    shutil.rmtree(scratch / "gradio", ignore_errors=True)
    persons = Persons(services)
    api = _api(persons, is_open=login.is_needed) if settings.api else None
    inbox = Inbox(scratch / "incoming", settings.max_upload_mb * MIB)
    people = People(persons, inbox, login.user_of if login.is_needed else None)
    scripts = Scripts(people, api)
    closing = Closing()
    guard = Middleware(
        Guard,
        hosts=known_names(settings),
        refusals=Refusals(lambda text: print(text, flush=True)),
        upload=inbox,
        mcp=Mcp(scripts),
        login=login,
        people=people,
        scripts=scripts,
        closing=closing,
        behind_proxy=settings.behind_proxy,
        api=api,
    )

    health = Middleware(Health, services=services)

    async def opened() -> tuple[gr.Blocks, str]:
        page = build_page(people, scripts)
        page.queue(max_size=None, default_concurrency_limit=None, api_open=False)
        options = _options([health, guard])
        return page, open_server(page, host=settings.host, port=port, options=options)

    # The library makes a loop for each of its locks where none runs, and never closes it.
    with ThreadPoolExecutor(1) as thread:
        page, url = thread.submit(asyncio.run, opened()).result()
    handle = Handle(
        url=url.rstrip("/") + "/",
        _page=page,
        _persons=persons,
        _people=people,
        _api=api,
        _inbox=inbox,
        _closing=closing,
    )
    if block:
        _wait(handle)
    return handle


def serve(services: Services) -> None:
    """Open the page, print its address, and stay until Ctrl-C."""
    handle = launch(services)
    print(f"Open {handle.url} in your browser. Ctrl-C ends the program.", flush=True)
    others = addresses_for_others(services.settings, urlsplit(handle.url).port or 80)
    if others:
        print(f"On other machines: {' or '.join(others)}", flush=True)
    if services.settings.api:
        print(f"Programs find the API at {handle.url}v1 (docs/api.md).", flush=True)
    _wait(handle)


def _api(persons: Persons, *, is_open: bool) -> Api:
    """The API beside the page. `is_open`: others may reach the page by logging in."""
    settings = persons.shared.settings
    reachable = is_open or settings.behind_proxy or not is_loopback(settings.host)
    return Api(persons, needs_key=reachable)


def usable_port(host: str, port: int) -> int:
    """`port` if nothing listens on it; for 0 one that is free. Raises SettingsError."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        # As the server does, so that a port counts as free right after its last program.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise SettingsError(
                f"Port {port} is taken by another program or not allowed; choose another one "
                'with --port (make run ARGS="--port 8000"), or --port 0 for any free one.'
            ) from error
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


def _options(middleware: list[Middleware]) -> dict[str, Any]:
    return {
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
        "app_kwargs": {"middleware": middleware},
        "css": stylesheet(),
        "head": head(),
        "theme": theme(),
    }
