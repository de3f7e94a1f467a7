"""Folders built once: damaged, killed, copied, raced for, or without space."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from chatbot.engine import cache_folder
from chatbot.engine.cache_folder import build_once, is_intact
from chatbot.errors import ModelError


def building(folder: Path) -> None:
    (folder / "sub").mkdir()
    (folder / "a.bin").write_bytes(b"a" * 1000)
    (folder / "sub" / "b.json").write_text("{}")


def built(target: Path, build: Callable[[Path], None] = building, recipe: str = "1") -> Path:
    return build_once(target, recipe=recipe, build=build, needed_bytes=10)


def refuse(folder: Path) -> None:
    raise AssertionError("nothing had to be built")


def damage_size(target: Path) -> None:
    (target / "a.bin").write_bytes(b"a" * 999)


def damage_bytes(target: Path) -> None:
    (target / "a.bin").write_bytes(b"b" * 1000)


def damage_missing(target: Path) -> None:
    (target / "sub" / "b.json").unlink()


def damage_manifest(target: Path) -> None:
    (target / cache_folder.MANIFEST).write_text("{")


def damage_no_manifest(target: Path) -> None:
    (target / cache_folder.MANIFEST).unlink()


@pytest.mark.parametrize(
    "damage",
    [damage_size, damage_bytes, damage_missing, damage_manifest, damage_no_manifest],
)
def test_damaged_folder_is_built_again(tmp_path: Path, damage: Callable[[Path], None]) -> None:
    target = built(tmp_path / "m")
    assert built(target, refuse) == target
    damage(target)
    assert not is_intact(target, "1")
    built(target)
    assert (target / "a.bin").read_bytes() == b"a" * 1000
    assert sorted(p.name for p in tmp_path.iterdir()) == ["m", "m.lock"]


def test_copied_folder_is_trusted_and_another_recipe_is_not(tmp_path: Path) -> None:
    target = built(tmp_path / "m")
    os.utime(target / "a.bin", (1, 1))
    assert is_intact(target, "1")
    built(target, lambda folder: (folder / "new").write_text("x") and None, recipe="2")
    assert (target / "new").is_file()
    assert not (target / "a.bin").exists()


def test_failed_build_leaves_nothing(tmp_path: Path) -> None:
    def fail(folder: Path) -> None:
        building(folder)
        raise ModelError("no luck")

    with pytest.raises(ModelError, match="no luck"):
        built(tmp_path / "m", fail)
    assert [p.name for p in tmp_path.iterdir()] == ["m.lock"]
    built(tmp_path / "m")


KILLED = """
import os, signal, sys
from pathlib import Path
from chatbot.engine.cache_folder import build_once
def build(folder):
    (folder / "half.bin").write_bytes(b"x" * 5000)
    if sys.argv[2] == "die":
        os.kill(os.getpid(), signal.SIGKILL)
build_once(Path(sys.argv[1]), recipe="1", build=build, needed_bytes=1)
"""


def test_killed_build_starts_again_cleanly(tmp_path: Path) -> None:
    target = tmp_path / "m"
    killed = subprocess.run([sys.executable, "-c", KILLED, str(target), "die"], timeout=60)
    assert killed.returncode < 0
    assert not target.exists()
    assert list(tmp_path.glob(".m.*"))
    built(target)
    assert is_intact(target, "1")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["m", "m.lock"]


def test_only_one_builds_and_the_others_wait(tmp_path: Path) -> None:
    builds: list[int] = []
    said: list[str] = []

    def slow(folder: Path) -> None:
        builds.append(1)
        time.sleep(0.3)
        building(folder)

    def work() -> None:
        build_once(
            tmp_path / "m",
            recipe="1",
            build=slow,
            needed_bytes=1,
            progress=lambda message, share: said.append(message),
        )

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert builds == [1]
    assert any("Waiting for another process" in message for message in said)


def test_no_space_and_no_permission_are_sentences(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        cache_folder.shutil, "disk_usage", lambda path: SimpleNamespace(free=5 << 20)
    )
    with pytest.raises(ModelError, match=r"10 MiB are needed and 5 MiB are free"):
        build_once(tmp_path / "m", recipe="1", build=refuse, needed_bytes=10 << 20)

    def full(folder: Path) -> None:
        raise OSError(28, "No space left on device")

    with pytest.raises(ModelError, match="is full; free some space"):
        built(tmp_path / "m", full)
    (tmp_path / "file").write_text("x")
    with pytest.raises(ModelError, match="cannot be written"):
        built(tmp_path / "file" / "m")
