"""Where the Llama 3 vocabulary is: in the package llama-models, which the tests install."""

from __future__ import annotations

import importlib.util
from pathlib import Path


def llama3_vocabulary() -> Path:
    """The file tokenizer.model. Raises SystemExit with what to install when it is missing."""
    spec = importlib.util.find_spec("llama_models")
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit("Run make test once (it installs llama-models), or give --tokenizer.")
    return Path(next(iter(spec.submodule_search_locations))) / "llama3" / "tokenizer.model"
