"""Who may open the page in a network: a file of names with hashed passwords. Knows no page.

One line each: the name, a colon, and the scrypt hash with its parameters. The file is readable for
its owner only.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import logging
import os
import re
import secrets
import threading
from collections.abc import Mapping
from pathlib import Path

from chatbot.errors import InputError, SettingsError

log = logging.getLogger(__name__)
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,31}")
_COST, _BLOCK, _PARALLEL, _LENGTH = 1 << 14, 8, 1, 32
MIN_PASSWORD_CHARACTERS = 8


def read_users(path: Path) -> dict[str, str]:
    """Hashes by names. Raises SettingsError for a file that is missing or not of this form."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(
            f"The file of users {path} cannot be read; make it with "
            f"'python -m chatbot user add NAME --file {path}'."
        ) from error
    found: dict[str, str] = {}
    for number, line in enumerate(lines, start=1):
        if not line.strip() or line.startswith("#"):
            continue
        name, _, hashed = line.partition(":")
        if not _NAME.fullmatch(name) or not hashed.startswith("scrypt$"):
            raise SettingsError(
                f"{path}, line {number}: not a user as 'python -m chatbot user add' writes one."
            )
        found[name] = hashed
    if not found:
        raise SettingsError(f"There is no user in {path}; add one with 'user add NAME'.")
    return found


class UserFile:
    """The users of a running server; follows the file, so that whoever is removed is out at once.

    While the file cannot be read, nobody gets in: nothing opens by a mistake.
    """

    def __init__(self, path: Path) -> None:
        """Raises SettingsError for a file that cannot be read or names nobody."""
        self._path = path
        self._lock = threading.Lock()
        self._state = self._seen()  # first, or a change in between would never be seen
        self._users = read_users(path)

    def users(self) -> Mapping[str, str]:
        """Hashes by names, as the file has them now."""
        with self._lock:
            state = self._seen()
            if state != self._state:
                try:
                    self._users = read_users(self._path)
                except SettingsError as error:
                    log.warning("Nobody can log in until this is mended: %s", error)
                    self._users = {}
                self._state = state
            return self._users

    def _seen(self) -> tuple[int, ...] | None:
        try:
            status = self._path.stat()
        except OSError:
            return None
        return (status.st_mtime_ns, status.st_size, status.st_ino)


def add_user(path: Path, name: str, password: str) -> None:
    """Add a user, or give one another password, in one step. Raises InputError."""
    if not _NAME.fullmatch(name):
        raise InputError(
            "A name has up to 32 small letters a-z, digits, - and _, and begins with a letter or "
            "digit."
        )
    if len(password) < MIN_PASSWORD_CHARACTERS:
        raise InputError(f"A password has at least {MIN_PASSWORD_CHARACTERS} characters.")
    known = read_users(path) if path.exists() else {}
    write_users(path, {**known, name: hash_of(password)})


def write_users(path: Path, users: Mapping[str, str]) -> None:
    """Replace the file, readable for its owner only. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(path.name + ".new")
    fresh.unlink(missing_ok=True)
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.writelines(f"{name}:{hashed}\n" for name, hashed in users.items())
    fresh.replace(path)


def hash_of(password: str) -> str:
    """A salted hash that takes a tenth of a second to check."""
    salt = secrets.token_bytes(16)
    return _line(salt, _derived(password, salt, _COST))


def is_right(users: Mapping[str, str], name: str, password: str) -> bool:
    """Whether this is the password of this user. Takes as long for a name that is not there."""
    hashed = users.get(name, _NOBODY)
    _, cost, salt, derived = hashed.split("$")
    tried = _derived(password, base64.b64decode(salt), int(cost))
    return hmac.compare_digest(tried, base64.b64decode(derived)) and name in users


def _derived(password: str, salt: bytes, cost: int) -> bytes:
    return hashlib.scrypt(
        password.encode("utf-8", "surrogatepass"),
        salt=salt, n=cost, r=_BLOCK, p=_PARALLEL, dklen=_LENGTH,
    )  # fmt: skip


def _line(salt: bytes, derived: bytes) -> str:
    parts = (base64.b64encode(part).decode() for part in (salt, derived))
    return "$".join(("scrypt", str(_COST), *parts))


_NOBODY = _line(bytes(16), bytes(_LENGTH))
