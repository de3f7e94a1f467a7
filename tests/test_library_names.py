"""Files that are called alike stay two documents when they come together."""

from __future__ import annotations

from pathlib import Path

from retrieval.files import walk


def made(root: Path, *names: str) -> list[Path]:
    paths = [root / name for name in names]
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(path.as_posix(), encoding="utf-8")
    return paths


def test_files_of_different_names_keep_them(tmp_path: Path) -> None:
    paths = made(tmp_path, "a/one.txt", "b/two.txt")
    assert [name for _, name in walk(paths)] == ["one.txt", "two.txt"]


def test_a_file_of_a_folder_is_named_by_its_path_in_it(tmp_path: Path) -> None:
    made(tmp_path, "a/in/one.txt", "a/.hidden/two.txt", "a/program.exe")
    assert [name for _, name in walk([tmp_path / "a"])] == ["in/one.txt"]


def test_files_called_alike_are_told_apart_by_their_folders(tmp_path: Path) -> None:
    paths = made(tmp_path, "a/same.txt", "b/same.txt", "other.txt")
    assert [name for _, name in walk(paths)] == ["a/same.txt", "b/same.txt", "other.txt"]
    assert [name for _, name in walk([tmp_path / "a", tmp_path / "b"])] == [
        "a/same.txt",
        "b/same.txt",
    ]


def test_folders_called_alike_are_told_apart_by_their_whole_path(tmp_path: Path) -> None:
    paths = made(tmp_path, "x/a/same.txt", "y/a/same.txt")
    assert [name for _, name in walk(paths)] == [path.as_posix() for path in paths]


def test_a_file_named_twice_comes_once(tmp_path: Path) -> None:
    (path,) = made(tmp_path, "a/one.txt")
    assert walk([path, path.parent, path]) == [(path, "one.txt")]
