"""Who may use the API: a file of keys, stored hashed, each with its person and limits.

One line of JSON for each key. A key is 256 random bits, so one round of SHA-256 hides it: there is
nothing to guess. Knows no route and no chat.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
import threading
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from pydantic import Field, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass as checked

from chatbot.errors import InputError, SettingsError

FILE = "api-keys.txt"
PREFIX = "sk-local-"
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,31}")
NAME_RULE = "up to 32 small letters a-z, digits, - and _, and begins with a letter or digit"
_Count = Field(ge=0, le=1_000_000_000)


@checked(frozen=True, slots=True)
class Limits:
    """What one key may ask for; 0 is no limit. A day is one of UTC."""

    requests_per_minute: int = _Count
    tokens_per_day: int = _Count
    parallel: int = _Count


USUAL_LIMITS = Limits(requests_per_minute=600, tokens_per_day=0, parallel=64)


@dataclass(frozen=True, slots=True)
class Key:
    """One key. `user` is whose chats and documents it reaches; "": those of a page without login.

    `digest` is the SHA-256 of the key in hex.
    """

    name: str
    user: str
    digest: str
    limits: Limits
    created: str = ""


OPEN = Key("", "", "", Limits(0, 0, 0))
"""Stands for everyone where no key is needed."""

_KEY = TypeAdapter(Key)


def digest_of(key: str) -> str:
    """What is stored in place of a key."""
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()


def read_keys(path: Path) -> dict[str, Key]:
    """Keys by their digests. Raises SettingsError for a file that is not of this form."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(
            f"The file of keys {path} cannot be read; make it with "
            "'python -m chatbot key add NAME'."
        ) from error
    found: dict[str, Key] = {}
    for number, line in enumerate(lines, start=1):
        if line.strip():
            try:
                key = _KEY.validate_json(line)
            except ValidationError as error:
                raise SettingsError(
                    f"{path}, line {number}: not a key as 'python -m chatbot key add' writes one."
                ) from error
            found[key.digest] = key
    return found


def add_key(path: Path, name: str, *, user: str, limits: Limits, created: str) -> str:
    """Make a key and return it; only its hash is kept. Raises InputError for a name that is bad or
    taken."""
    for what, given in (("name", name), ("user", user)):
        if (given or what == "name") and not _NAME.fullmatch(given):
            raise InputError(f"The {what} of a key has {NAME_RULE}.")
    known = read_keys(path) if path.exists() else {}
    if any(key.name == name for key in known.values()):
        raise InputError(
            f"There is already a key {name!r}; choose another name or revoke it first."
        )
    text = PREFIX + secrets.token_urlsafe(32)
    fresh = Key(name, user, digest_of(text), limits, created)
    _write(path, [*known.values(), fresh])
    return text


def revoke_key(path: Path, name: str) -> None:
    """Take a key out of the file; a running server refuses it from then on. Raises InputError."""
    known = list(read_keys(path).values())
    left = [key for key in known if key.name != name]
    if len(left) == len(known):
        raise InputError(f"There is no key {name!r} in {path}; 'key list' shows all.")
    _write(path, left)


class KeyFile:
    """The keys of a running server; follows the file, so that a revoked key is refused at once.

    Where there is no file, no key is needed. Once there was one, keys stay needed even if it is
    removed: nothing opens by a mistake.
    """

    def __init__(self, path: Path) -> None:
        """Raises SettingsError for a file that is there and cannot be read."""
        self._path = path
        self._lock = threading.Lock()
        self._state: tuple[int, ...] | None = None
        self._keys: dict[str, Key] = {}
        self._needed = False
        self._refresh()

    @property
    def is_needed(self) -> bool:
        """Whether requests need a key."""
        self._refresh()
        return self._needed

    @property
    def has_keys(self) -> bool:
        self._refresh()
        return bool(self._keys)

    def find(self, text: str) -> Key | None:
        """The key of this text, or None."""
        self._refresh()
        return self._keys.get(digest_of(text))

    def _refresh(self) -> None:
        with self._lock:
            try:
                status = self._path.stat()
            except OSError:
                self._keys, self._state = {}, None
                return
            state = (status.st_mtime_ns, status.st_size, status.st_ino)
            self._needed = True
            if state != self._state:
                self._keys = {}
                self._keys = read_keys(self._path)
                self._state = state


def _write(path: Path, keys: Sequence[Key]) -> None:
    """Replace the file in one step, readable for its owner only."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(path.name + ".new")
    fresh.unlink(missing_ok=True)
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.writelines(json.dumps(asdict(key)) + "\n" for key in keys)
    fresh.replace(path)
