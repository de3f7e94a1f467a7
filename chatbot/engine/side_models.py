"""Where a model that stands beside the chat model is: for vectors, or to rank passages. Loads none.

sentence-transformers would ask the hub for each file, and again and again where it is away; given
a folder, it asks nobody.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from chatbot.engine import hub
from chatbot.engine.cache_folder import Progress, ignore_progress
from chatbot.engine.models import check_shards
from chatbot.errors import ModelError

_HUB_NAME = re.compile(r"(?:[A-Za-z0-9][\w.-]*/)?[A-Za-z0-9][\w.-]*")
_USUAL = "sentence-transformers"
"""The organisation that a name without one belongs to, as the library has it."""
_SMALL = (".json", ".txt", ".model", ".jinja", ".py")
_WEIGHTS = (".safetensors", ".bin")
_OTHER_FORMS = ("onnx", "openvino", "coreml")
_TOKENIZERS = ("tokenizer.json", "vocab*", "*.model")


@dataclass(frozen=True, slots=True)
class Purpose:
    """What a model is for, in words for messages."""

    what: str
    others: str
    """What else may be used."""


VECTORS = Purpose("embedding model", "set --embedding-model to a local folder, embedded or none")
RANKING = Purpose("reranking model", "set --reranker-model to a local folder or none")


def locate_side_model(name: str, purpose: Purpose, *, progress: Progress = ignore_progress) -> Path:
    """The folder of a sentence-transformers model by folder or hub name, fetched if need be.

    Raises ModelError with one sentence that says what is wrong and what to do.
    """
    folder = Path(name).expanduser()
    if folder.is_dir():
        return folder
    if not _HUB_NAME.fullmatch(name):
        raise ModelError(
            f"There is no folder {name} for the {purpose.what}; check the path, or "
            f"{purpose.others}."
        )
    try:
        return _found(name if "/" in name else f"{_USUAL}/{name}", progress)
    except hub.NotHereError as error:
        raise ModelError(f"The {purpose.what} {error.or_use(purpose.others)}") from error


def _found(name: str, progress: Progress) -> Path:
    from huggingface_hub import HfApi, snapshot_download

    try:
        folder = Path(hub.asked(name, snapshot_download, name, local_files_only=True))
        if hub.is_offline() or _is_whole(folder):
            return folder
    except hub.NotHereError:
        if hub.is_offline():
            raise
    progress(f"Looking up {name} on the hub.", None)
    info = hub.asked(name, HfApi().model_info, name)
    files = wanted([file.rfilename for file in info.siblings or ()])
    progress(f"Downloading {name} from the hub (once).", None)
    return Path(hub.asked(name, snapshot_download, name, allow_patterns=files))


def _is_whole(folder: Path) -> bool:
    """Whether a download that was cut off has left out nothing that matters."""
    has_tokenizer = any(any(folder.rglob(kind)) for kind in _TOKENIZERS)
    if not has_tokenizer or not any(any(folder.rglob(f"*{kind}")) for kind in _WEIGHTS):
        return False
    try:
        check_shards(folder)
    except ModelError:
        return False
    return True


def wanted(files: Sequence[str]) -> list[str]:
    """Of the files of a model those that are read: each weight once, as safetensors if it can be.

    Modules behind the model itself have folders of their own, with weights of one kind only.
    """
    ours = [path for path in map(PurePosixPath, files) if path.parts[0] not in _OTHER_FORMS]
    safe = {path.parent for path in ours if path.suffix == _WEIGHTS[0]}
    return [
        str(path)
        for path in ours
        if path.suffix in (*_SMALL, _WEIGHTS[0])
        or (path.suffix == ".bin" and path.parent not in safe)
    ]
