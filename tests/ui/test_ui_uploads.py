"""Files sent to the page: whose they are, how large, what stays of them."""

from __future__ import annotations

import errno
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from chatbot.ui.calls import Call, rejected_of
from chatbot.ui.inbox import Inbox, clean_name, suffix_of
from chatbot.ui.server import launch
from tests.browser.person import Site
from tests.ui.client import SECRET, UPLOAD, put, trigger, waiting_files


def test_only_the_browser_that_sent_a_file_can_have_it_read(
    client: httpx.Client, site: Site
) -> None:
    """BC-83, BC-85: a file is for its sender."""
    token = put(client, "%EB%A9%94%EB%AA%A8.txt", SECRET.encode()).json()["token"]
    with httpx.Client(base_url=site.url, timeout=10, trust_env=False) as stranger:
        stranger.get("/")
        trigger(stranger, "uploaded", {"tokens": [token], "failed": []})
    assert site.services.library.documents() == []
    trigger(client, "uploaded", {"tokens": [token], "failed": []})
    assert [d.name for d in site.services.library.documents()] == ["메모.txt"]
    trigger(client, "uploaded", {"tokens": [token], "failed": []})
    assert len(site.services.library.documents()) == 1, "a token counts once"
    site.services.library.delete(site.services.library.documents()[0].id)


@pytest.mark.parametrize(
    "claim",
    [
        {"tokens": ["/etc/passwd"]},
        {"tokens": [{"path": "/etc/passwd", "meta": {"_type": "gradio.FileData"}}]},
        {"tokens": "x"},
        {"tokens": None, "failed": 7},
        {"tokens": ["../incoming/x"], "failed": [{"reason": "no_such"}]},
        {},
    ],
)
def test_paths_in_place_of_tokens_read_nothing(
    client: httpx.Client, site: Site, claim: dict[str, Any]
) -> None:
    """BC-83: no request can name a path."""
    seen = trigger(client, "uploaded", claim)
    assert site.services.library.documents() == []
    assert "root:" not in json.dumps(seen)


def test_uploads_without_mark_or_header_and_large_ones_are_refused(
    client: httpx.Client, site: Site
) -> None:
    assert client.post(UPLOAD, content=b"x").status_code == 403
    assert client.get(UPLOAD).status_code == 403
    plain = httpx.post(
        site.url + UPLOAD, content=b"x", headers={"X-File-Name": "a"}, trust_env=False
    )
    assert plain.status_code == 403
    large = b"x" * (1_100_000)
    assert put(client, "a.txt", large).status_code == 413

    def endless() -> Iterator[bytes]:
        for _ in range(30):
            yield b"x" * 65_536

    sent = client.post(UPLOAD, content=endless(), headers={"X-File-Name": "a.txt"})
    assert sent.status_code == 413, "also without a length"
    assert waiting_files(site) == []


def test_waiting_files_of_one_browser_are_limited(tmp_path: Path) -> None:
    inbox = Inbox(tmp_path / "in", 10)
    for number in range(64):
        inbox.put(tmp_path / str(number), "a", "me")
    assert inbox.is_full("me") and not inbox.is_full("you")


def test_only_what_ended_programs_left_is_removed_at_the_start(tmp_path: Path) -> None:
    first = Inbox(tmp_path / "in", 10)
    (first.folder / "mine").write_text("x")
    (tmp_path / "in" / "of-an-older-version").write_text("x")
    pid, start, _ = first.folder.name.split("_")
    for name in ("999999999_1.000_dead", f"{pid}_{float(start) - 99:.3f}_reused", "nonsense"):
        (tmp_path / "in" / name).mkdir()
        (tmp_path / "in" / name / "left-over").write_text("x")
    second = Inbox(tmp_path / "in", 10)
    assert set((tmp_path / "in").iterdir()) == {first.folder, second.folder}
    second.close()
    assert (first.folder / "mine").exists() and not second.folder.exists()


def test_a_second_program_on_the_same_data_leaves_the_uploads_of_the_first(
    client: httpx.Client, site: Site
) -> None:
    token = put(client, "first.txt", b"Words of the first file.").json()["token"]
    second = launch(site.services, port=0)
    with httpx.Client(base_url=second.url, timeout=10, trust_env=False) as other:
        other.get("/")
        assert put(other, "other.txt", b"Words of another one.").status_code == 200
    second.close()
    later = put(client, "later.txt", b"Words of the later file.")
    assert later.status_code == 200, later.text
    trigger(client, "uploaded", {"tokens": [token, later.json()["token"]], "failed": []})
    found = site.services.library.documents()
    assert {document.name for document in found} == {"first.txt", "later.txt"}
    for document in found:
        site.services.library.delete(document.id)
    assert waiting_files(site) == []


def test_a_removed_folder_is_made_again(client: httpx.Client, site: Site) -> None:
    shutil.rmtree(site.settings.data_dir / "incoming")
    assert put(client, "a.txt", b"x").status_code == 200
    shutil.rmtree(site.settings.data_dir / "incoming")


@pytest.mark.parametrize(
    ("number", "reason", "words"),
    [(errno.ENOSPC, "disk_full", "is full"), (errno.EACCES, "not_saved", "could not save")],
)
def test_a_file_that_cannot_be_saved_is_answered_with_what_happened(
    client: httpx.Client,
    site: Site,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    *,
    number: int,
    reason: str,
    words: str,
) -> None:
    async def fails(*_: object) -> bool:
        raise OSError(number, "no")

    monkeypatch.setattr(Inbox, "_copy", fails)
    answer = put(client, "a.txt", b"x")
    assert (answer.status_code, answer.json()) == (500, {"error": reason})
    assert waiting_files(site) == [], "no part of it stays"
    captured = capfd.readouterr()
    assert "Traceback" not in captured.out + captured.err
    call = Call("", "", data={"failed": [{"name": "a.txt", "reason": reason}]})
    (_, sentence), *_ = rejected_of(call, "en", 1)
    assert words in sentence and "reload" not in sentence


@pytest.mark.parametrize(
    ("sent", "shown", "suffix"),
    [
        ("../../etc/passwd", "passwd", ""),
        ("C:\\x\\Report.PDF", "Report.PDF", ".pdf"),
        ("a\x00b\n\u202egpj.txt", "abgpj.txt", ".txt"),
        ("", "file", ""),
        ("보고서.docx", "보고서.docx", ".docx"),
        ("x" * 300 + ".md", "x" * 197 + ".md", ".md"),
        ("a.b/..", "..", ""),
        ("e.t;x y", "e.t;x y", ""),
    ],
)
def test_file_names_are_text_only(sent: str, shown: str, suffix: str) -> None:
    assert clean_name(sent) == shown
    assert suffix_of(shown) == suffix
