"""Models on the Hugging Face hub: configuration first, weights later; knows no model library.

HF_HUB_OFFLINE, HF_TOKEN, HF_HOME and HF_ENDPOINT are honoured by the hub's own client.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from chatbot.engine.cache_folder import Progress, gib, ignore_progress
from chatbot.engine.hub_reach import http_errors, hub_answers
from chatbot.errors import ModelError

_SMALL_FILES = ("*.json", "*.jinja", "*.txt", "tokenizer.model", "*.model")
_OTHERS = ", or use a local folder, a GGUF file or demo."


class NotHereError(ModelError):
    """A model is not on this machine, and cannot be fetched now: there is no network, or the
    client was told to stay off it."""

    def or_use(self, others: str) -> ModelError:
        """The same of a model that has other ones to take its place than a chat model."""
        return ModelError(str(self).removesuffix(_OTHERS) + f", or {others}.")


def hub_config(name: str) -> dict[str, Any]:
    """The config.json of a hub model, and of nothing else of it.

    Raises ModelError with what to do: unknown, gated, no token, no network, offline.
    """
    from huggingface_hub import hf_hub_download

    path = asked(name, hf_hub_download, name, "config.json")
    try:
        content: dict[str, Any] = json.loads(Path(path).read_text(encoding="utf-8"))
    except ValueError as error:
        raise ModelError(f"The config.json of {name} on the hub is damaged.") from error
    return content


def hub_folder(name: str, progress: Progress = ignore_progress) -> Path:
    """The folder of a hub model with weights and tokenizer; downloads what is missing."""
    from huggingface_hub import HfApi, snapshot_download
    from huggingface_hub.constants import HF_HUB_CACHE

    if is_offline():
        return Path(asked(name, snapshot_download, name, local_files_only=True))
    progress(f"Looking up {name} on the hub.", None)
    info = asked(name, HfApi().model_info, name, files_metadata=True)
    sizes = {file.rfilename: file.size or 0 for file in info.siblings or ()}
    weights = weight_patterns(sizes)
    if not weights:
        message = (
            f"{name} on the hub has no weights that can be used here (safetensors); if it holds "
            "GGUF files, download one and give its path."
        )
        raise ModelError(message)
    needed = sum(size for file, size in sizes.items() if Path(file).match(weights[0]))
    _check_space(name, Path(HF_HUB_CACHE), needed)
    progress(f"Downloading {name} from the hub ({gib(needed)}, once).", None)
    patterns = [*weights, *_SMALL_FILES]
    folder = asked(name, snapshot_download, name, allow_patterns=patterns, ignore_patterns=["*/*"])
    return Path(folder)


def hub_small_files(name: str) -> Path:
    """A folder with the configuration and the tokenizer of a hub model, without its weights."""
    from huggingface_hub import snapshot_download

    options: dict[str, Any] = {"allow_patterns": [*_SMALL_FILES], "ignore_patterns": ["*/*"]}
    if is_offline():
        options = {"local_files_only": True}
    return Path(asked(name, snapshot_download, name, **options))


def weight_patterns(files: Any) -> list[str]:
    """Which weights to take: safetensors, else the older format; none of the copies."""
    top = [file for file in files if "/" not in file]
    if any(file.endswith(".safetensors") for file in top):
        return ["*.safetensors"]
    if any(file.startswith("pytorch_model") and file.endswith(".bin") for file in top):
        return ["pytorch_model*.bin"]
    return []


def is_offline() -> bool:
    """Whether the hub's client was told to stay off the network."""
    from huggingface_hub import constants

    return bool(constants.HF_HUB_OFFLINE)


def asked(name: str, function: Any, *arguments: Any, **options: Any) -> Any:
    """Call the hub's client; its errors become one sentence each."""
    from huggingface_hub import errors

    is_local = bool(options.get("local_files_only"))
    if not is_local and not is_offline() and not hub_answers():
        # The client itself would retry for a minute and more. What is cached needs no network.
        if function.__name__ == "model_info":
            raise _no_network(name)
        options = {"local_files_only": True}
    try:
        return function(*arguments, **options)
    except errors.GatedRepoError as error:
        raise ModelError(_gated(name)) from error
    except errors.RepositoryNotFoundError as error:
        raise ModelError(_unknown(name, error)) from error
    except errors.HFValidationError as error:
        message = f"{name!r} is no valid hub name; it looks like organisation/model."
        raise ModelError(message) from error
    except errors.LocalEntryNotFoundError as error:
        raise _not_cached(name) if is_offline() else _no_network(name) from error
    except errors.EntryNotFoundError as error:
        message = (
            f"{name} on the hub has no config.json, so it cannot be loaded; if it holds GGUF "
            "files, download one and give its path."
        )
        raise ModelError(message) from error
    except http_errors() as error:
        raise _refused(name, error) from error
    except OSError as error:
        message = f"{name} cannot be stored: {error.strerror or error}; check the hub's cache."
        raise ModelError(message) from error


def _has_token() -> bool:
    from huggingface_hub import get_token

    return bool(get_token())


def _gated(name: str) -> str:
    page = f"https://huggingface.co/{name}"
    if _has_token():
        return (
            f"{name} is a gated model that your token may not read yet; accept its licence at "
            f"{page} with the account of your token, then start again."
        )
    return (
        f"{name} is a gated model; accept its licence at {page}, create a token at "
        "https://huggingface.co/settings/tokens, set it as HF_TOKEN and start again."
    )


def _unknown(name: str, error: Exception) -> str:
    if _status(error) == 401 and _has_token():
        return _bad_token()
    hint = "" if _has_token() else " (for a private model set HF_TOKEN)"
    return f"There is no model {name} on the hub; check the name{hint}."


def _refused(name: str, error: Exception) -> ModelError:
    status = _status(error)
    if status is None:
        return _no_network(name)
    if status == 401:
        return ModelError(_bad_token())
    if status == 403:
        return ModelError(_gated(name))
    return ModelError(f"The hub refused {name} with status {status}; try again later.")


def _bad_token() -> str:
    return (
        "The hub does not accept your token; create a new one at "
        "https://huggingface.co/settings/tokens and set it as HF_TOKEN."
    )


def _no_network(name: str) -> NotHereError:
    return NotHereError(
        f"{name} is not on this machine and the hub cannot be reached; check the network{_OTHERS}"
    )


def _not_cached(name: str) -> NotHereError:
    return NotHereError(
        f"{name} is not complete in the hub's cache and HF_HUB_OFFLINE is set; unset it to "
        f"download the model{_OTHERS}"
    )


def _status(error: Exception) -> int | None:
    response = getattr(error, "response", None)
    return getattr(response, "status_code", None)


def _check_space(name: str, cache: Path, needed_bytes: int) -> None:
    place = next(folder for folder in (cache, *cache.parents) if folder.exists())
    free = shutil.disk_usage(place).free
    if free < needed_bytes:
        message = (
            f"Not enough disk space for {name}: {gib(needed_bytes)} are needed in {cache} and "
            f"{gib(free)} are free; free some space or set HF_HOME to another disk."
        )
        raise ModelError(message)
