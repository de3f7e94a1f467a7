"""Model names -> files on this machine: demo, a local folder, a GGUF file or a hub name.

Knows where models are and how to get them; does not load them.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from chatbot.engine import embedded, gguf_files, hub
from chatbot.engine.cache_folder import Progress, build_once, gib, ignore_progress, is_intact
from chatbot.engine.known_models import KNOWN_CONFIGS
from chatbot.errors import ModelError

ModelKind = Literal["demo", "folder", "gguf", "hub"]
DEMO = "demo"
EMBEDDED = "embedded"
_HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")
_HEAD_BYTES = 1 << 20
_CHOICES = (
    "a hub name such as meta-llama/Llama-3.2-1B-Instruct, a local folder, a GGUF file or demo"
)


@dataclass(frozen=True, slots=True)
class ModelFiles:
    """A model on this machine: `folder` holds configuration, tokenizer and weights."""

    name: str
    kind: ModelKind
    folder: Path

    @property
    def is_demo(self) -> bool:
        return self.kind == "demo"


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """A model's config.json, read without its weights. `source` says where it is from."""

    name: str
    kind: ModelKind
    config: dict[str, Any]
    source: str


def kind_of(name: str) -> ModelKind:
    """What a name stands for. Raises ModelError when it is nothing of the four."""
    if name == DEMO:
        return "demo"
    path = Path(name).expanduser()
    if name and path.is_dir():
        return "folder"
    if path.is_file():
        gguf_files.check_gguf(path)
        return "gguf"
    if _looks_like_path(name):
        raise ModelError(f"There is no model folder or file {name}; check the path.")
    if _HUB_NAME.fullmatch(name):
        return "hub"
    raise ModelError(f"Unknown model {name!r}; give {_CHOICES}.")


def read_config(name: str, *, cache_dir: Path) -> ModelConfig:
    """The configuration alone, so that a plan can be made before any weights are fetched.

    Only a hub name may use the network. Raises ModelError with what to do.
    """
    kind = kind_of(name)
    if kind == "demo":
        return _demo_config(cache_dir)
    path = Path(name).expanduser()
    if kind == "folder":
        return ModelConfig(name, kind, _folder_config(path), str(path / "config.json"))
    if kind == "gguf":
        header = gguf_files.read_header(path)
        return ModelConfig(name, kind, gguf_files.config_of_header(header), f"header of {path}")
    try:
        return ModelConfig(name, kind, hub.hub_config(name), "config.json on the hub")
    except ModelError:
        if name not in KNOWN_CONFIGS:
            raise
        # The arithmetic is public knowledge and needs neither a licence nor a network.
        return ModelConfig(name, kind, dict(KNOWN_CONFIGS[name]), "built-in figures")


def locate(name: str, *, cache_dir: Path, progress: Progress = ignore_progress) -> ModelFiles:
    """The files of a model, downloaded and converted if they are not there yet.

    Raises ModelError with one sentence that says what is wrong and what to do.
    """
    kind = kind_of(name)
    path = Path(name).expanduser()
    if kind == "demo":
        folder = embedded.demo_folder(cache_dir, convert=gguf_files.convert, progress=progress)
    elif kind == "gguf":
        folder = _converted(path.resolve(), cache_dir, progress)
    elif kind == "folder":
        folder = path
    else:
        folder = hub.hub_folder(name, progress)
    check_folder(folder)
    return ModelFiles(name, kind, folder)


def locate_tokenizer(name: str, *, cache_dir: Path, progress: Progress = ignore_progress) -> Path:
    """A folder with a model's tokenizer; fetches no weights where they can be left out."""
    kind = kind_of(name)
    if kind == "folder":
        return Path(name).expanduser()
    if kind == "hub":
        return hub.hub_small_files(name)
    return locate(name, cache_dir=cache_dir, progress=progress).folder


def locate_embedder(
    name: str, *, cache_dir: Path, progress: Progress = ignore_progress
) -> Path | str:
    """The embedded embedder's folder; any other name is returned for the library to resolve."""
    if name == EMBEDDED:
        return embedded.embedder_folder(cache_dir, progress=progress)
    path = Path(name).expanduser()
    return path if path.is_dir() else name


def fetch(cache_dir: Path, progress: Progress = ignore_progress) -> list[Path]:
    """Prepare everything that the default settings need, so that the first start is quick."""
    demo = locate(DEMO, cache_dir=cache_dir, progress=progress).folder
    return [demo, embedded.embedder_folder(cache_dir, progress=progress)]


def check_folder(folder: Path) -> None:
    """Raise ModelError unless a folder holds a configuration and all its weights."""
    _folder_config(folder)
    if any(folder.glob("*.index.json")):
        check_shards(folder)
    elif not any(folder.glob("*.safetensors")) and not any(folder.glob("pytorch_model*.bin")):
        message = (
            f"The folder {folder} has no weights (*.safetensors); copy or download the model's "
            "weight files into it."
        )
        raise ModelError(message)


def check_shards(folder: Path) -> None:
    """Raise ModelError if a folder lacks a part of weights that are in several files."""
    for index in folder.glob("*.index.json"):
        try:
            shards = set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values())
        except (ValueError, KeyError, AttributeError) as error:
            raise ModelError(f"The weight list {index} is damaged; copy it again.") from error
        missing = sorted(shard for shard in shards if not (folder / shard).is_file())
        if missing:
            message = (
                f"The folder {folder} lacks {len(missing)} of {len(shards)} weight files, such as "
                f"{missing[0]}; copy or download them."
            )
            raise ModelError(message)


def _folder_config(folder: Path) -> dict[str, Any]:
    path = folder / "config.json"
    if not path.is_file():
        ggufs = sorted(folder.glob("*.gguf"))
        instead = f"give the file itself, {ggufs[0]}" if ggufs else "give the model's own folder"
        raise ModelError(f"The folder {folder} has no config.json; {instead}.")
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ModelError(f"{path} cannot be read as JSON; copy it again.") from error
    if not isinstance(content, dict):
        raise ModelError(f"{path} is not a model configuration; give the model's own folder.")
    return content


def _demo_config(cache_dir: Path) -> ModelConfig:
    folder = cache_dir / "models" / embedded.DEMO_FOLDER
    if is_intact(folder, embedded.DEMO_RECIPE):
        return ModelConfig(DEMO, "demo", _folder_config(folder), str(folder / "config.json"))
    return ModelConfig(DEMO, "demo", dict(KNOWN_CONFIGS[DEMO]), "built-in figures")


def _converted(path: Path, cache_dir: Path, progress: Progress) -> Path:
    """The converted form of a GGUF file, made once for each content of the file."""
    status = path.stat()
    with path.open("rb") as file:
        head = hashlib.sha256(file.read(_HEAD_BYTES)).hexdigest()
    recipe = f"{status.st_size}-{status.st_mtime_ns}-{head}-1"
    target = (
        cache_dir / "models" / f"gguf-{path.stem}-{hashlib.sha256(bytes(path)).hexdigest()[:8]}"
    )
    if is_intact(target, recipe):
        return target
    needed = 2 * int(gguf_files.read_header(path)["n_parameters"])
    progress(f"{path.name} is converted once into {target} ({gib(needed)}).", None)
    return build_once(
        target,
        recipe=recipe,
        build=lambda folder: gguf_files.convert(path, folder, progress),
        needed_bytes=needed + needed // 20,
        progress=progress,
    )


def _looks_like_path(name: str) -> bool:
    return (
        name.startswith((".", "/", "~"))
        or name.lower().endswith((".gguf", ".safetensors", ".bin"))
        or "\\" in name
        or name.count("/") > 1
    )
