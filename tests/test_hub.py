"""The hub: which files are taken, and one sentence for each refusal."""

from __future__ import annotations

import socket
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

from chatbot.engine import hub, hub_reach, models
from chatbot.errors import ModelError

HUB_NAME = "meta-llama/Some-Model-8B-Instruct"


def response(status: int) -> httpx.Response:
    return httpx.Response(status, request=httpx.Request("GET", "https://hub.invalid/x"))


def hub_error(name: str, status: int = 404) -> Exception:
    from huggingface_hub import errors

    kind = getattr(errors, name)
    if name in ("LocalEntryNotFoundError", "HFValidationError"):
        return kind("no")  # type: ignore[no-any-return]
    return kind("no", response=response(status))  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    "error, token, offline, sentence",
    [
        (hub_error("GatedRepoError", 403), None, False, "its licence at https://hugg.*HF_TOKEN"),
        (hub_error("GatedRepoError", 403), "t", False, "your token may not read yet; accept"),
        (hub_error("RepositoryNotFoundError"), None, False, "no model .*; check the name"),
        (hub_error("RepositoryNotFoundError", 401), "t", False, "does not accept your token"),
        (hub_error("HfHubHTTPError", 401), "t", False, "does not accept your token"),
        (hub_error("HfHubHTTPError", 403), None, False, "accept its licence"),
        (hub_error("HfHubHTTPError", 503), None, False, "status 503; try again later"),
        (hub_error("RemoteEntryNotFoundError"), None, False, "has no config.json"),
        (hub_error("LocalEntryNotFoundError"), None, False, "hub cannot be reached"),
        (hub_error("LocalEntryNotFoundError"), None, True, "HF_HUB_OFFLINE is set"),
        (hub_error("HFValidationError"), None, False, "no valid hub name"),
        (httpx.ConnectError("no route"), None, False, "hub cannot be reached"),
        (OSError(28, "No space left on device"), None, False, "cannot be stored"),
    ],
)  # fmt: skip
def test_each_refusal_of_the_hub_is_a_sentence(
    error: Exception, token: str | None, offline: bool, sentence: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    import huggingface_hub

    def hf_hub_download(*arguments: Any, **options: Any) -> str:
        raise error

    monkeypatch.setattr(huggingface_hub, "hf_hub_download", hf_hub_download)
    monkeypatch.setattr(huggingface_hub, "get_token", lambda: token)
    monkeypatch.setattr(hub, "is_offline", lambda: offline)
    monkeypatch.setattr(hub, "hub_answers", lambda: True)
    with pytest.raises(ModelError, match=sentence) as caught:
        models.read_config(HUB_NAME, cache_dir=Path("none"))
    assert "\n" not in str(caught.value)


def test_no_network_is_told_at_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(hub, "hub_answers", lambda: False)
    started = time.monotonic()
    for action in (models.read_config, models.locate):
        with pytest.raises(ModelError, match="the hub cannot be reached; check the network"):
            action(HUB_NAME, cache_dir=tmp_path)
    assert time.monotonic() - started < 5


def test_only_a_hub_that_answers_can_be_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever it answers. A name that resolves tells nothing of it."""
    from huggingface_hub import close_session, constants

    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    close_session()  # the next one reads that
    answer = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    monkeypatch.setattr(hub_reach, "ANSWER_S", 30.0)
    monkeypatch.setattr(hub_reach, "WAIT_S", 30.0)
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"http://127.0.0.1:{server.getsockname()[1]}"
        monkeypatch.setattr(constants, "ENDPOINT", address)

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        assert hub_reach.hub_answers()
        thread.join()
        monkeypatch.setattr(hub_reach, "ANSWER_S", 0.1)  # now it listens and says nothing
        assert not hub_reach.hub_answers()
    monkeypatch.setattr(hub_reach, "ANSWER_S", 30.0)
    assert not hub_reach.hub_answers()  # nobody listens
    with pytest.raises(ModelError, match="the hub cannot be reached; check the network"):
        models.locate(HUB_NAME, cache_dir=Path("none"))


def test_hub_files_are_chosen_and_space_is_checked(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    import huggingface_hub

    asked: dict[str, Any] = {}
    sizes = {
        "config.json": 1,
        "model-1.safetensors": 3 << 30,
        "model-2.safetensors": 2 << 30,
        "pytorch_model.bin": 5 << 30,
        "original/consolidated.00.pth": 5 << 30,
    }
    listing = [SimpleNamespace(rfilename=name, size=size) for name, size in sizes.items()]

    class Api:
        def model_info(self, name: str, files_metadata: bool) -> Any:
            return SimpleNamespace(siblings=listing)

    def snapshot_download(name: str, **options: Any) -> str:
        asked.update(options)
        return str(tmp_path)

    monkeypatch.setattr(huggingface_hub, "HfApi", Api)
    monkeypatch.setattr(huggingface_hub, "snapshot_download", snapshot_download)
    monkeypatch.setattr(hub, "hub_answers", lambda: True)
    free = 6 << 30
    monkeypatch.setattr(hub.shutil, "disk_usage", lambda path: SimpleNamespace(free=free))
    said: list[str] = []
    assert hub.hub_folder(HUB_NAME, lambda message, share: said.append(message)) == tmp_path
    assert "*.safetensors" in asked["allow_patterns"]
    assert "pytorch_model*.bin" not in asked["allow_patterns"]
    assert asked["ignore_patterns"] == ["*/*"]
    assert "5.00 GiB" in said[-1]
    free = 4 << 30
    with pytest.raises(ModelError, match=r"5\.00 GiB are needed"):
        hub.hub_folder(HUB_NAME)
    listing[:] = [SimpleNamespace(rfilename="x.gguf", size=1)]
    with pytest.raises(ModelError, match="if it holds GGUF files"):
        hub.hub_folder(HUB_NAME)
