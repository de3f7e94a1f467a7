"""The first step of every start: says in one sentence what this Python lacks.

Written so that an old Python can read it, and imports nothing at the top that could be missing.
"""

import sys


def start() -> None:
    """Hand over to the command line."""
    if sys.version_info < (3, 11):  # noqa: UP036
        version = ".".join(str(part) for part in sys.version_info[:2])
        sys.exit(
            f"chatbot: Python 3.11 or newer is needed and this is {version}; install one, or try "
            "'make run', which looks for one."
        )
    try:
        from chatbot.cli import entry
    except ModuleNotFoundError as error:
        sys.exit(
            f"chatbot: the package '{error.name}' is not installed for this Python; use "
            ".venv/bin/python (on Windows .venv\\Scripts\\python), which 'make run' sets up."
        )
    entry()
