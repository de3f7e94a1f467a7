"""Where the conversations are: the path of a file, or the URL of a database. Opens nothing."""

from __future__ import annotations

from pathlib import Path

import sqlalchemy as sa
from sqlalchemy.exc import ArgumentError

from chatbot.errors import StoreError

Location = Path | str
PLACE = "The conversation database "
"""What sentences that name the place begin with."""


def parse_url(location: str) -> sa.URL:
    """The parts of a URL, with the driver that this program uses. Raises StoreError."""
    try:
        url = sa.make_url(location)
    except (ArgumentError, ValueError) as error:
        raise StoreError(
            "The database URL cannot be read; write it as postgresql://user:password@host/name."
        ) from error
    if "@" in (url.host or ""):
        raise StoreError(
            "The host in the database URL holds an @; in a user's name or password it is written "
            "%40, and / is %2F, : is %3A."
        )
    if url.drivername in ("postgres", "postgresql"):
        return url.set(drivername="postgresql+psycopg")
    return url


def describe(location: Location) -> str:
    """The place as a sentence may name it, without a password."""
    if isinstance(location, Path):
        return f"{PLACE}{location}"
    # A query may hold a password, too.
    url = parse_url(location).set(query={})
    return f"{PLACE}{url.render_as_string(hide_password=True)}"
