"""Pictures of the page into docs/: python -m tests.browser.screenshots [--demo]

With --demo the embedded model answers (docs/page.png); else a script does (all other pictures).
"""

from __future__ import annotations

import argparse
import io
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.sync_api import Browser, expect, sync_playwright

from chatbot.engine.base import EngineInfo
from chatbot.engine.scripted import ScriptedEngine
from chatbot.engine.switching import SwitchingEngine
from chatbot.messages import Fact, FoldDecision, RollingSummary
from chatbot.services import build_services
from chatbot.settings import Settings
from chatbot.ui.server import launch
from tests.browser.person import CHROMIUM, FLAGS, Person, Site, person
from tests.file_maker import pdf

DOCS = Path(__file__).resolve().parents[2] / "docs"
DESKTOP: dict[str, Any] = {"viewport": {"width": 1280, "height": 860}}
PHONE: dict[str, Any] = {
    "viewport": {"width": 390, "height": 844},
    "is_mobile": True,
    "has_touch": True,
    "device_scale_factor": 2,
}
GUIDE = """# Carrick lighthouse: keeper's guide

## History

The lighthouse was built in 1898 under the engineer Mary Ode. It replaced a coal fire on the
headland. The tower is 32 metres high and has 148 steps.

## Light

The lamp shows two white flashes every 15 seconds and is seen from 18 nautical miles. The lens is
cleaned on the first Monday of each month; wear cotton gloves and use rain water only.

## Supplies

Spare bulbs lie in the oil store, shelf 3. Order new ones from the depot at Lorne when fewer than
four are left. The boat brings supplies on the 2nd and the 16th of each month.
"""
GUIDE_KO = """# 캐릭 등대 관리 안내서

## 역사

등대는 1898년에 기술자 메리 오드의 지휘로 세워졌다. 탑의 높이는 32미터이고 계단은 148개이다.

## 등불

등불은 15초마다 흰 빛을 두 번 비추며 18해리 밖에서도 보인다. 렌즈는 매달 첫째 월요일에 닦는다.
면장갑을 끼고 빗물만 사용한다.

## 보급

예비 전구는 기름 창고 3번 선반에 있다. 네 개보다 적게 남으면 론 보급소에 주문한다.
"""
REPLIES = {
    "When was": "The lighthouse was built in 1898 under the engineer Mary Ode. It is still in use "
    "by the coast guard today.",
    "clean the lens": "The lens is cleaned on the first Monday of each month:\n\n1. Wear cotton "
    "gloves.\n2. Use rain water only.",
    "언제": "등대는 1898년에 기술자 메리 오드의 지휘로 세워졌다. 지금은 박물관으로 쓰인다.",
    "렌즈": "렌즈는 매달 첫째 월요일에 닦는다. 면장갑을 끼고 빗물만 사용한다.",
}


def script(prompt: str, _: tuple[int, ...]) -> str:
    """The reply to whichever known question stands last in the prompt."""
    places = {prompt.rfind(words): reply for words, reply in REPLIES.items()}
    return places[max(places)]


@contextmanager
def scripted() -> Iterator[Site]:
    with tempfile.TemporaryDirectory() as folder:
        site = Site(
            Path(folder), engine=lambda: ScriptedEngine(script, window_tokens=2560, name="example")
        )
        yield site
        site.close()


def talk(tab: Person, *, korean: bool) -> Person:
    """Two questions about a document, the prompt of the last one open."""
    if korean:
        tab.upload(("등대 안내서.md", GUIDE_KO.encode()))
        questions = ("등대는 언제 세워졌어?", "렌즈는 어떻게 닦아?")
    else:
        tab.upload(("keeper's guide.md", GUIDE.encode()))
        questions = ("When was the lighthouse built?", "How do I clean the lens?")
    expect(tab.documents).to_have_count(1)
    for question in questions:
        tab.ask(question)
    tab.page.locator("#chat .trace > summary").last.click()
    expect(tab.page.locator("#chat .trace[open] .piece").first).to_be_visible()
    tab.page.locator("#chat .trace[open]").last.scroll_into_view_if_needed()
    return tab


def shoot(tab: Person, name: str) -> None:
    """One picture, after everything has settled."""
    tab.page.mouse.move(0, 0)
    tab.page.wait_for_timeout(400)
    picture = Image.open(io.BytesIO(tab.page.screenshot())).convert("RGB")
    # The page has few colours: a third of the bytes shows the same.
    picture.quantize(256, dither=Image.Dither.NONE).save(DOCS / f"{name}.png", optimize=True)
    print(f"docs/{name}.png {(DOCS / f'{name}.png').stat().st_size // 1024} KiB")


def pictures(browser: Browser) -> None:
    """Every main state, desktop and phone, English and Korean, light and dark."""

    def tab(site: Site, locale: str, look: dict[str, Any], scheme: str = "light") -> Person:
        for earlier in browser.contexts:
            earlier.close()
        context = browser.new_context(locale=locale, color_scheme=scheme, **look)  # type: ignore[arg-type]
        return person(context, site.url)

    for locale, short in (("en-US", "en"), ("ko-KR", "ko")):
        korean = short == "ko"
        with scripted() as site:
            shoot(talk(tab(site, locale, DESKTOP), korean=korean), f"chat-{short}")
        with scripted() as site:
            shoot(talk(tab(site, locale, PHONE), korean=korean), f"phone-{short}")
        with demo_like() as site:
            shoot(tab(site, locale, DESKTOP), f"start-{short}")
    with scripted() as site:
        shoot(talk(tab(site, "en-US", DESKTOP, "dark"), korean=False), "chat-en-dark")
    with scripted() as site:
        folded(site, lambda: tab(site, "en-US", DESKTOP))
    with scripted() as site:
        source(tab(site, "en-US", DESKTOP))
    with exchangeable() as site:
        settings(tab(site, "en-US", DESKTOP))


def folded(site: Site, open_tab: Callable[[], Person]) -> None:
    """A chat whose oldest turn is folded, with what the panel and the dialogs show of it."""
    tab = talk(open_tab(), korean=False)
    store, chat = site.services.store, tab.conversation_id
    turn = store.load(chat).turns[0]
    facts = (
        Fact("I look after the lighthouse of Carrick.", turn.id, turn.user[0].id, id="f1"),
        Fact("The boat comes on the 16th.", turn.id, turn.user[0].id, pinned=True, id="f2",
             earlier="The boat comes on the 14th."),
        Fact("Answer briefly.", "", "", id="f3", edited=True),
    )  # fmt: skip
    text = "The user asked when the lighthouse was built: in 1898, under Mary Ode."
    store.save_summary(chat, RollingSummary(text, 1, 21, facts))
    tries = [
        FoldDecision("2026-03-02T10:15:00", 1, False, None, ("invented: Tom Ode",), "Tom Ode..."),
        FoldDecision("2026-03-02T10:15:04", 1, True, "model", ()),
    ]
    store.add_fold_decisions(chat, tries)
    tab.page.reload()
    tab.page.locator("#chat .foldline > summary").click()
    tab.page.locator("#panel-tabs [data-tab=memory]").click()
    tab.page.locator("#summary .decisions > summary").click()
    shoot(tab, "folded-en")
    tab.page.locator("#panel-tabs [data-tab=machine]").click()
    shoot(tab, "machine-en")


def source(tab: Person) -> None:
    """The page of a PDF that a reply rests on."""
    pages = [part.strip().splitlines() for part in GUIDE.split("## ")]
    tab.upload(("keeper's guide.pdf", pdf(pages)))
    expect(tab.documents).to_have_count(1)
    tab.ask("When was the lighthouse built?")
    tab.page.locator("#chat .sources [data-act=source]").first.click()
    expect(tab.page.locator("dialog .page-picture img")).to_be_visible(timeout=60_000)
    shoot(tab, "source-en")


def settings(tab: Person) -> None:
    """Another model is named and may be loaded; one value is refused."""
    tab.page.locator("#side-foot [data-act=options]").click()
    for name, value in (("model", "meta-llama/Llama-3.2-3B-Instruct"), ("temperature", "3")):
        field = tab.page.locator(f"#settings [data-name={name}] input")
        field.fill(value)
        field.press("Tab")
        expect(tab.page.locator("#settings .load")).to_be_visible()
    expect(tab.page.locator("#settings .option .refused")).to_be_visible()
    shoot(tab, "settings-en")


@contextmanager
def exchangeable() -> Iterator[Site]:
    with tempfile.TemporaryDirectory() as folder:
        engine = lambda: SwitchingEngine(  # noqa: E731
            Settings(), load=lambda _: DemoLike(script), prepare=lambda *_: None
        )
        site = Site(Path(folder), engine=engine)
        yield site
        site.close()


class DemoLike(ScriptedEngine):
    """Looks like the embedded model to the page."""

    @property
    def info(self) -> EngineInfo:
        return EngineInfo("SmolLM2-135M-Instruct", 2048, dtype="float32", is_demo=True)


@contextmanager
def demo_like() -> Iterator[Site]:
    with tempfile.TemporaryDirectory() as folder:
        site = Site(Path(folder), engine=lambda: DemoLike(script))
        yield site
        site.close()


def demo_picture(browser: Browser) -> None:
    """docs/page.png: the page as `make run` opens it, with a document and its answer."""
    with tempfile.TemporaryDirectory() as folder:
        services = build_services(Settings(data_dir=Path(folder), port=0))
        handle = launch(services)
        high = {"viewport": {"width": 1280, "height": 980}}
        tab = Person(browser.new_page(locale="en-US", **high)).open(handle.url)
        expect(tab.page.locator("#top .badge")).to_be_visible(timeout=120_000)
        tab.upload(("keeper's guide.md", GUIDE.encode()))
        expect(tab.documents).to_have_count(1, timeout=120_000)
        tab.write("When was the lighthouse built?")
        expect(tab.feet).to_have_count(1, timeout=120_000)
        tab.page.locator("#chat .trace > summary").click()
        expect(tab.page.locator("#chat .trace[open] .piece").first).to_be_visible()
        shoot(tab, "page")
        handle.close()
        services.close()


def main() -> None:
    """Make the pictures that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--demo", action="store_true", help="only docs/page.png")
    only_demo = parser.parse_args().demo
    DOCS.mkdir(exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        if only_demo:
            demo_picture(browser)
        else:
            pictures(browser)
        browser.close()


if __name__ == "__main__":
    main()
