"""A file to pages of text, within limits of size, time and memory. Knows no format.

Formats with real parsers are read in a child process: a hang, a crash or a flood of memory
costs that one file. See `retrieval.loaders` for the formats.
"""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from retrieval.loaders import LOADERS, READABLE, Loader
from retrieval.loaders.characters import sanitize_line
from retrieval.loaders.encoding import decode
from retrieval.loaders.parsed import Parsed, from_json, sanitized
from retrieval.types import LoadedFile, LoadError

SUPPORTED_SUFFIXES: frozenset[str] = frozenset(LOADERS)
# Larger texts go to the child as well: they would hold up the program's other threads.
_PLAIN_BYTES = 1 << 20
_SAVE_AS = "save it as {} in its own program and upload that"
_ADVICE = {
    **dict.fromkeys((".doc", ".dot", ".hwp", ".hwpx", ".pages"), _SAVE_AS.format("DOCX or PDF")),
    **dict.fromkeys((".ppt", ".pps", ".key"), _SAVE_AS.format("PPTX or PDF")),
    ".numbers": _SAVE_AS.format("XLSX"),
    **dict.fromkeys(
        (".7z", ".rar", ".tar", ".gz", ".tgz"),
        "unpack it and upload its files, or a ZIP archive of them",
    ),
}
_POLL_S = 0.02
_WORKER = ("-m", "retrieval.loaders.worker")
_PROJECT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True, slots=True)
class LoadLimits:
    """What one file may cost. `memory_bytes` is held on Linux only, the others everywhere."""

    max_bytes: int
    timeout_s: float
    memory_bytes: int
    max_pages: int
    max_result_bytes: int = 256 << 20
    """Size of the parsed text as it comes out of the child, with its escapes."""


def load_file(
    path: Path, limits: LoadLimits, *, cancel: threading.Event | None = None
) -> LoadedFile:
    """The text of a file, page by page, with warnings about what could not be read.

    Raises LoadError with one sentence for whatever is wrong with the file or with reading it,
    and when `cancel` is set meanwhile.
    """
    loader, n_bytes = check_file(path, limits)
    try:
        if loader.plain and n_bytes <= _PLAIN_BYTES:
            parsed = sanitized(loader.read(path, max_pages=limits.max_pages))
        else:
            parsed = _in_child(path, limits, cancel)
    except OSError as error:
        raise LoadError(f"This file cannot be opened ({error.strerror or error}).") from error
    warnings = parsed.warnings
    if not warnings and not any(page.text.strip() for page in parsed.pages):
        warnings = ("There is no text in this file.",)
    return LoadedFile(display_name(path.name), loader.media, parsed.pages, warnings)


def display_name(name: str) -> str:
    """A file's name as one clean line (NFC). Names in old encodings are read as such."""
    return _readable(name.replace("\\", "/").rsplit("/", 1)[-1]) or "unnamed"


def document_name(name: str) -> str:
    """A path as the name of a document: each of its parts as `display_name` has it, without ".".

    Never raises, and gives its own results back unchanged, so that names can be compared.
    """
    parts = [_readable(part) for part in name.split("/")]
    root = "/" if name.startswith("/") else ""
    return root + ("/".join(part for part in parts if part not in ("", ".")) or "unnamed")


def _readable(name: str) -> str:
    try:
        name.encode()
    except UnicodeEncodeError:  # bytes that are not UTF-8, as archives from Windows leave them
        try:
            name = decode(os.fsencode(name)).text
        except (LoadError, UnicodeError):  # bytes that are no text, or no bytes at all
            name = name.encode("utf-8", "replace").decode()
    return sanitize_line(name)


def check_file(path: Path, limits: LoadLimits) -> tuple[Loader, int]:
    """How to read the file, and its bytes. It is not opened: a pipe or a device never ends.

    Raises LoadError for what is no file, of an unknown format, too large or empty.
    """
    status = _status(path)
    loader = _loader(path)
    if status.st_size > limits.max_bytes:
        size, most = status.st_size / 2**20, limits.max_bytes / 2**20
        raise LoadError(
            f"This file has {size:.1f} MiB, {most:g} MiB are allowed; split it or raise the limit."
        )
    if status.st_size == 0:
        raise LoadError("This file is empty (0 bytes); save it anew and give it again.")
    return loader, status.st_size


def _loader(path: Path) -> Loader:
    loader = LOADERS.get(path.suffix.lower())
    if loader is None:
        kind = f"“{_readable(path.suffix)}” files" if path.suffix else "files without a name ending"
        if advice := _ADVICE.get(path.suffix.lower()):
            raise LoadError(f"This program cannot read {kind}; {advice}.")
        raise LoadError(f"This program cannot read {sanitize_line(kind)}; it reads {READABLE}.")
    return loader


def _status(path: Path) -> os.stat_result:
    try:
        status = path.stat()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise LoadError(f"This file cannot be opened ({reason}).") from error
    if not stat.S_ISREG(status.st_mode):
        raise LoadError("This is not a file; choose a file.")
    return status


def _in_child(path: Path, limits: LoadLimits, cancel: threading.Event | None) -> Parsed:
    with tempfile.TemporaryDirectory(prefix="parse-", ignore_cleanup_errors=True) as folder:
        result = Path(folder) / "result.json"
        job: dict[str, str | int] = {"suffix": path.suffix.lower(), "max_pages": limits.max_pages}
        return _answer(result, run_worker(path, result, limits, job, cancel=cancel), limits)


def run_worker(
    path: Path,
    result: Path,
    limits: LoadLimits,
    job: dict[str, str | int],
    *,
    cancel: threading.Event | None = None,
) -> int:
    """Do a job on a file in a child process, which writes `result`; its exit code.

    Raises LoadError when the time is up or `cancel` is set.
    """
    bounds = {
        "path": str(path.resolve()),
        "result": str(result),
        "timeout_s": limits.timeout_s,
        "memory_bytes": limits.memory_bytes,
        "result_bytes": limits.max_result_bytes,
    }
    return _run(json.dumps(bounds | job), limits.timeout_s, cancel)


def _run(job: str, timeout_s: float, cancel: threading.Event | None) -> int:
    """The child's exit code. It is gone when this returns or raises."""
    command = [sys.executable, "-X", "utf8", "-W", "ignore", *_WORKER]
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd=_PROJECT,  # where `-m` finds the package, whatever the program's folder is
    )
    try:
        _feed(process, job)
        return _wait(process, timeout_s, cancel)
    finally:
        process.kill()
        process.wait()


def _feed(process: subprocess.Popen[bytes], job: str) -> None:
    assert process.stdin is not None
    try:
        process.stdin.write(job.encode())
        process.stdin.close()
    except BrokenPipeError:
        pass  # it died at once: its exit code tells


def _wait(
    process: subprocess.Popen[bytes], timeout_s: float, cancel: threading.Event | None
) -> int:
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        if cancel is not None and cancel.is_set():
            raise LoadError("Reading this file was cancelled.")
        try:
            return process.wait(timeout=_POLL_S)
        except subprocess.TimeoutExpired:
            continue
    raise LoadError(
        f"Reading this file took longer than {timeout_s:g} s and was stopped; "
        "split the file or raise the time limit."
    )


def _answer(result: Path, code: int, limits: LoadLimits) -> Parsed:
    n_bytes = result.stat().st_size if result.exists() else 0
    if n_bytes >= limits.max_result_bytes:
        raise LoadError("This file holds more text than is allowed; split it.")
    if code != 0:
        raise LoadError(
            "The reader crashed on this file, which is probably damaged; "
            "open it in its own program, save it anew and try again."
        )
    text = result.read_text(encoding="ascii")
    answer = json.loads(text)
    if "error" in answer:
        raise LoadError(answer["error"])
    return from_json(text)
