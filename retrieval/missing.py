"""The sentence for a package that is not installed. Knows no package and installs nothing."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TEAM_FILE = "requirements-team.txt"
"""Lists what only those need who use a server for models, conversations, documents or figures."""


def needs_package(what: str, package: str) -> str:
    """That `what`, such as a setting, needs a package of the team's list, with the command that
    gets all of that list for the very Python that runs, whatever folder one is in."""
    file = TEAM_FILE if Path.cwd() == ROOT else str(ROOT / TEAM_FILE)
    return f"{what} needs the package {package}; run: {_typed([*_pip(), '-r', file])}"


def _pip() -> list[str]:
    return [sys.executable or "python", "-m", "pip", "install"]


def _typed(command: list[str]) -> str:
    """As it is typed here, with quotes around what has blanks."""
    return subprocess.list2cmdline(command) if sys.platform == "win32" else shlex.join(command)
