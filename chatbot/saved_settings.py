"""Settings that were changed on the page: a file in the data folder, below all other sources.

Knows no page. A file that cannot be read counts as empty, since the program must start.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

FILE = "page-settings.json"
_log = logging.getLogger(__name__)


def read_saved(data_dir: Path) -> dict[str, Any]:
    """What was saved in a data folder, by the names of settings; {} for none."""
    try:
        found = json.loads((data_dir / FILE).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        _log.warning("The settings saved by the page cannot be read and do not count: %s", error)
        return {}
    return {str(key): value for key, value in found.items()} if isinstance(found, dict) else {}


def save(data_dir: Path, values: Mapping[str, Any]) -> None:
    """Replace what is saved, in one step. Raises OSError."""
    data_dir.mkdir(parents=True, exist_ok=True)
    path = data_dir / FILE
    fresh = path.with_suffix(".new")
    fresh.write_text(json.dumps(dict(values), ensure_ascii=False, indent=1), encoding="utf-8")
    fresh.replace(path)
