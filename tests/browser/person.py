"""The page over a scripted engine, and a person in front of it, for the browser tests."""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, ClassVar

from playwright.sync_api import BrowserContext, Locator, Page, expect

from chatbot.chat import Chat
from chatbot.engine.base import Engine
from chatbot.engine.scripted import Scripted, ScriptedEngine, ScriptedReply
from chatbot.errors import EngineError, SettingsError
from chatbot.services import Services
from chatbot.settings import Settings
from chatbot.store import Store
from chatbot.ui.server import Handle, launch, usable_port
from retrieval.embed import ScriptedEmbedder
from retrieval.pipeline import Library

# The first has no window to draw and takes a sixth less time for these tests.
BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
CHROMIUM = next(filter(None, map(shutil.which, BROWSERS)), None)
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
HTML = (
    "Words in <name> and List<int>. <style>*{display:none}</style> "
    '<img src=x onerror="window.hacked=1"> ![pixel](http://example.invalid/x.png) `a<b>`'
)
CODE = (
    "Code:\n\n```python\ndef f(x: list[int]) -> None:\n    if x:\n        return\n\ttabbed()\n"
    "```\n\nEnd."
)
SLOW = " ".join(f"word{n}" for n in range(40))
LONG = " ".join(f"word{n}" for n in range(400))


def script(prompt: str, _: tuple[int, ...]) -> Scripted:
    """Replies by what the last question asks for: `script:NAME`, or else an echo."""
    wishes = re.findall(r"script:(\w+)", prompt)
    wish = wishes[-1] if wishes else ""
    if "Carrick" in prompt and not wish:
        return "The lamp of Carrick was built in 1898. It also sings at night."
    return {
        # Long enough for a machine of a fifth of the speed to look at it before it ends.
        "slow": ScriptedReply(SLOW, tokens_per_s=25, ends_itself=False),
        "stall": ScriptedReply(SLOW, tokens_per_s=60, stall_after_tokens=5),
        "brief": ScriptedReply(SLOW, tokens_per_s=60),
        "long": ScriptedReply(LONG, tokens_per_s=60),
        "fail": EngineError("The scripted engine broke <b>down</b>."),
        "half": ScriptedReply(SLOW, fail_after_tokens=12, tokens_per_s=200),
        "html": HTML,
        "code": CODE,
    }.get(wish, "A plain reply.")


class Site:
    """One running program with its page, which can be restarted on the same data and port."""

    _ports: ClassVar[list[int]] = []
    """Of programs that have ended: at a known address a browser keeps the page's scripts."""

    def __init__(
        self,
        folder: Path,
        *,
        engine: Callable[[], Engine] | None = None,
        embedder: ScriptedEmbedder | None = None,
        **settings: Any,
    ) -> None:
        self._make_engine = engine or (lambda: ScriptedEngine(script, window_tokens=4096))
        given = {"data_dir": folder, "port": 0, "embedding_model": "none", **settings}
        self.settings = Settings(**given)
        self.embedder = embedder or ScriptedEmbedder()
        self.services: Services
        self.handle: Handle
        self._open(self.settings.port or self._known_port())

    @property
    def url(self) -> str:
        return self.handle.url

    @contextmanager
    def away(self) -> Iterator[None]:
        """The program has ended; it is started again afterwards."""
        port = self._port
        self.close()
        self._ports.remove(port)
        yield
        self._open(port)

    def close(self) -> None:
        self.handle.close()
        self.services.close()
        self._ports.append(self._port)

    @property
    def _port(self) -> int:
        return int(self.url.rstrip("/").rsplit(":", 1)[1])

    def _known_port(self) -> int:
        while self._ports:
            with suppress(SettingsError):
                return usable_port("127.0.0.1", self._ports.pop())
        return 0

    def _open(self, port: int) -> None:
        folder, engine = self.settings.data_dir, self._make_engine()
        store = Store(folder / "chats.db")
        library = Library(
            folder / "library",
            embedder=self.embedder,
            count_tokens=lambda text: len(engine.tokenizer.encode(text)),
        )
        chat = Chat(settings=self.settings, store=store, engine=engine, library=library)
        self.services = Services(self.settings, store, library, engine, chat)
        self.handle = launch(self.services, port=port)


class Person:
    """A tab of the page, and what a person does in it."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.box = page.locator("#msg textarea")
        self.questions = page.locator("#chat [data-testid=user]")
        self.replies = page.locator("#chat [data-testid=bot]:has(.message-content)")
        self.feet = page.locator("#chat .foot")
        self.send_button = page.locator("#msg .submit-button")
        self.stop_button = page.locator("#msg .stop-button")
        self.chats = page.locator("#conversations .item")
        self.documents = page.locator("#documents .document")
        self.toasts = page.locator(".toast-body")

    def open(self, url: str) -> Person:
        self.page.goto(url)
        # Drawn by the load event: from now on the page works.
        expect(self.page.locator("#language")).to_have_count(1, timeout=60_000)
        return self

    def write(self, text: str) -> Person:
        self.box.fill(text)
        self.box.press("Enter")
        return self

    def ask(self, text: str) -> Person:
        """Send and wait for the end of the reply."""
        before = self.feet.count()
        self.write(text)
        expect(self.feet).to_have_count(before + 1)
        expect(self.send_button).to_be_visible()
        return self

    def new_chat(self) -> Person:
        self.page.locator("#new-chat button").click()
        expect(self.page.locator(".welcome")).to_be_visible()
        return self

    def upload(self, *files: tuple[str, bytes]) -> Person:
        """Give files to the page as its file dialog would."""
        given: list[Any] = [
            {"name": name, "mimeType": "application/octet-stream", "buffer": data}
            for name, data in files
        ]
        button = self.page.locator("#upload button")
        if not button.is_visible():
            # On a phone, behind the menu.
            self.page.locator("#upload-files").set_input_files(given)
            return self
        with self.page.expect_file_chooser() as chooser:
            button.click()
        chooser.value.set_files(given)
        return self

    def last_reply(self) -> Locator:
        return self.replies.last

    @property
    def conversation_id(self) -> str:
        found = re.search(r"[?&]c=([^&]+)", self.page.url)
        return found[1] if found else ""


# What a test may have left on a page. A script of the page itself watches for none of it.
LEFT = """() => {
  localStorage.clear();
  document.body.classList.remove('dark');
  document.querySelector('#shell').classList.remove(
    'side-open', 'panel-open', 'side-closed', 'panel-closed');
  document.querySelectorAll('.toast-close').forEach((button) => button.click());
  document.querySelector('#panel-tabs [data-tab=prompt]').click();
}"""


def fresh(tab: Person, url: str) -> Person:
    """A tab on the page of `url` as if it had just been opened."""
    assert tab.page.url.startswith(url)
    assert tab.send_button.is_visible() and not tab.page.locator("dialog[open]").count()
    tab.page.evaluate(LEFT)
    tab.box.fill("")
    tab.new_chat()
    expect(tab.toasts).to_have_count(0, timeout=5_000)
    expect(tab.page.locator("#context .none")).to_be_visible(timeout=5_000)
    return tab


def until(check: Callable[[], bool], what: str, limit_s: float = 40.0) -> None:
    """Wait for something that is not on the page."""
    end = time.monotonic() + limit_s
    while not check():
        assert time.monotonic() < end, f"never happened: {what}"
        time.sleep(0.02)


def person(context: BrowserContext, url: str) -> Person:
    """A new tab on `url`."""
    return Person(context.new_page()).open(url)
