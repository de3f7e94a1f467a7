"""load_file: names, limits, and that a broken parser costs one file only."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
import unicodedata
from pathlib import Path

import file_maker as make
import pytest

import retrieval.load as front
from retrieval.load import SUPPORTED_SUFFIXES, LoadLimits, display_name, load_file
from retrieval.loaders import archive
from retrieval.types import LoadError

LIMITS = LoadLimits(max_bytes=20 << 20, timeout_s=30, memory_bytes=1 << 30, max_pages=500)
ROOT = Path(__file__).resolve().parent.parent
SHARED = ROOT.parent / "shared" / "data" / "files"

MISBEHAVE = """
import sys, types, os, ctypes, time
from retrieval.loaders import LOADERS, Loader
from retrieval.loaders.parsed import whole
bad = types.ModuleType("retrieval.loaders.bad")
def read(path, max_pages):
    {action}
    return whole("fine")
bad.read = read
sys.modules["retrieval.loaders.bad"] = bad
LOADERS[".html"] = Loader("html", "bad")
from retrieval.loaders.worker import main
sys.exit(main())
"""


def misbehaving(monkeypatch: pytest.MonkeyPatch, action: str) -> None:
    monkeypatch.setattr(front, "_WORKER", ("-c", MISBEHAVE.format(action=action)))


def page(folder: Path) -> Path:
    return make.write(folder, "page.html", "<p>text</p>")


def test_supported_suffixes() -> None:
    assert {".txt", ".md", ".pdf", ".docx", ".html", ".htm", ".csv", ".tsv"} <= SUPPORTED_SUFFIXES


@pytest.mark.parametrize(
    ("action", "sentence"),
    [
        ("ctypes.string_at(0)", "crashed"),
        ("os._exit(3)", "crashed"),
        ("raise KeyError('x')", "damaged"),
        ("read(path, max_pages)", "nested too deeply"),
    ],
)
def test_crashes_become_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, action: str, sentence: str
) -> None:
    misbehaving(monkeypatch, action)
    with pytest.raises(LoadError, match=sentence) as caught:
        load_file(page(tmp_path), LIMITS)
    assert "\n" not in str(caught.value)


def test_misbehaving_parsers_are_really_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    misbehaving(monkeypatch, "pass")
    assert load_file(page(tmp_path), LIMITS).pages[0].text == "fine"


@pytest.mark.skipif(sys.platform != "linux", reason="memory is limited on Linux only")
def test_memory_flood_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    misbehaving(monkeypatch, "x = bytearray(400 << 20)")
    small = LoadLimits(1 << 20, 30, 100 << 20, 10)
    with pytest.raises(LoadError, match="memory"):
        load_file(page(tmp_path), small)


def test_hang_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    misbehaving(monkeypatch, "time.sleep(60)")
    started = time.monotonic()
    with pytest.raises(LoadError, match="took longer"):
        load_file(page(tmp_path), LoadLimits(1 << 20, 0.5, 1 << 30, 10))
    assert time.monotonic() - started < 10


def test_cancel_kills_the_child(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    alive = tmp_path / "alive"
    misbehaving(monkeypatch, f"open({str(alive)!r}, 'w').write(str(os.getpid())); time.sleep(60)")
    cancel = threading.Event()

    def cancel_soon() -> None:
        while not alive.exists():
            time.sleep(0.01)
        cancel.set()

    threading.Thread(target=cancel_soon, daemon=True).start()
    started = time.monotonic()
    with pytest.raises(LoadError, match="cancelled"):
        load_file(page(tmp_path), LIMITS, cancel=cancel)
    assert time.monotonic() - started < 20
    if sys.platform == "linux":
        assert not Path(f"/proc/{alive.read_text()}").exists()


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no limit on written files")
def test_flood_of_text_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    misbehaving(monkeypatch, "return whole('x' * (5 << 20))")
    limits = LoadLimits(1 << 20, 30, 1 << 30, 10, max_result_bytes=1 << 20)
    with pytest.raises(LoadError, match="more text than is allowed"):
        load_file(page(tmp_path), limits)


def test_child_loads_no_heavy_library() -> None:
    code = (
        "import sys; import retrieval.loaders.worker, retrieval.loaders.pdf_file; "
        "import retrieval.loaders.docx_file, retrieval.loaders.html_page; "
        "heavy = {'torch', 'numpy', 'transformers', 'gradio', 'faiss'} & set(sys.modules); "
        "sys.exit(', '.join(heavy) or 0)"
    )
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0


def test_many_small_texts_need_no_child(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    misbehaving(monkeypatch, "os._exit(1)")
    monkeypatch.setattr(front, "_WORKER", ("-c", "raise SystemExit(1)"))
    for name in ("a.txt", "b.md", "c.csv"):
        assert load_file(make.write(tmp_path, name, "plain text"), LIMITS).pages[0].text


def test_large_text_is_read_in_the_child(tmp_path: Path) -> None:
    text = "한 줄의 글입니다.\n" * 60_000
    assert load_file(make.write(tmp_path, "big.txt", text), LIMITS).pages[0].text == text


@pytest.mark.parametrize(
    ("name", "data", "sentence"),
    [
        ("a.xyz", b"text", "cannot read"),
        ("a.hwp", b"text", "save it as DOCX or PDF"),
        ("noending", b"text", "without a name ending"),
        ("a.pdf", b"", "empty"),
        ("a.txt", b"", "empty"),
        ("a.txt", b"x" * (2 << 20), "split it"),
        ("a.pdf", b"<html>no pdf</html>", "not a PDF"),
        ("a.pdf", b"%PDF-1.7 garbage", "damaged"),
        ("a.docx", b"no zip", "damaged or not a Word"),
        ("a.docx", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 99, "password-protected or older"),
        ("a.docx", make.archive({"x.txt": "no document"}), "not a Word document"),
        ("a.txt", b"\x89PNG\r\n\x1a\n\0\0\0\0", "an image"),
        ("a.csv", bytes(range(256)) * 9, "not text"),
        ("a.html", b"\x7fELF" + bytes(99), "a program"),
    ],
)
def test_bad_files_are_one_sentence(tmp_path: Path, name: str, data: bytes, sentence: str) -> None:
    with pytest.raises(LoadError, match=sentence) as caught:
        load_file(make.write(tmp_path, name, data), LoadLimits(1 << 20, 30, 1 << 30, 10))
    message = str(caught.value)
    assert message.endswith(".") and "\n" not in message and str(tmp_path) not in message


def test_missing_files_and_folders(tmp_path: Path) -> None:
    with pytest.raises(LoadError, match="cannot be opened"):
        load_file(tmp_path / "missing.pdf", LIMITS)
    (tmp_path / "folder.txt").mkdir()
    with pytest.raises(LoadError, match="not a file"):
        load_file(tmp_path / "folder.txt", LIMITS)


def test_zip_bomb_is_not_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "_MAX_BYTES", 1000)
    bomb = make.write(tmp_path, "bomb.docx", make.archive({"a.xml": b"0" * 1001}))
    with pytest.raises(LoadError, match="far too large when unpacked"):
        archive.open_archive(bomb, kind="a Word document")


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("보고서.pdf", "보고서.pdf"),
        (unicodedata.normalize("NFD", "보고서.pdf"), "보고서.pdf"),  # as macOS writes names
        ("a\nb\x00\u202efdp.txt", "a bfdp.txt"),
        ("../../etc/passwd", "passwd"),
        ("C:\\Users\\me\\notes.txt", "notes.txt"),
        ("한글.txt".encode("cp949").decode("utf-8", "surrogateescape"), "한글.txt"),
        ("\n", "unnamed"),
    ],
)
def test_display_names(given: str, shown: str) -> None:
    assert display_name(given) == shown


def test_control_characters_go_everywhere(tmp_path: Path) -> None:
    """BC-52: in text and metadata; the word around a NUL is found again."""
    text = load_file(make.write(tmp_path, "a.txt", b"a wo\0rd \x1b[31mred\x1b[0m\x07"), LIMITS)
    assert text.pages[0].text == "a word red"
    page = load_file(make.write(tmp_path, "a.html", "<p>sur&#xD835;rogate &#0;x</p>"), LIMITS)
    page.pages[0].text.encode()
    data = make.pdf([["lone \ud835 half"]], info=b"/Producer (x\0)")
    loaded = load_file(make.write(tmp_path, "a.pdf", data), LIMITS)
    loaded.pages[0].text.encode()
    assert "lone" in loaded.pages[0].text and "half" in loaded.pages[0].text


@pytest.mark.skipif(not SHARED.is_dir(), reason="../shared is not here")
def test_real_damaged_and_locked_files() -> None:
    folder = SHARED / "pypdf_resources" / "encryption"
    for path in sorted(folder.glob("*.pdf")):
        if "user" in path.name or path.name in {"r6-both-passwords.pdf"}:
            with pytest.raises(LoadError, match="password-protected"):
                load_file(path, LIMITS)
        elif "empty" in path.name or "owner" in path.name:  # up to AES-256
            assert "encryption test" in load_file(path, LIMITS).pages[0].text
