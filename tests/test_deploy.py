"""The files with which a team runs the program: valid, complete, and of settings that there are."""

from __future__ import annotations

import re
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from pydantic import SecretStr

from chatbot.operations import scratch_folder
from chatbot.settings import ENV_PREFIX, Settings, load_settings

ROOT = Path(__file__).resolve().parent.parent
DEPLOY = ROOT / "deploy"
BLANK = re.compile(r"\$\{(\w+)(:?[-?])?([^}]*)\}")


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))
    return loaded


def test_the_compose_file_is_valid_by_its_specification() -> None:
    """The schema is part of the package; nothing is fetched."""
    pytest.importorskip("check_jsonschema", reason="needs check-jsonschema")
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec"]
    done = subprocess.run([*command, str(DEPLOY / "compose.yaml")], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_wrong_compose_file_is_found(tmp_path: Path) -> None:
    pytest.importorskip("check_jsonschema", reason="needs check-jsonschema")
    text = (DEPLOY / "compose.yaml").read_text(encoding="utf-8")
    wrong = tmp_path / "compose.yaml"
    wrong.write_text(text.replace("  proxy:\n", "  proxy:\n    imagee: x\n"), encoding="utf-8")
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec"]
    done = subprocess.run([*command, str(wrong)], capture_output=True, text=True)
    assert done.returncode == 1
    assert "imagee" in done.stdout


def test_parts_volumes_and_networks_that_are_named_are_there(compose: dict[str, Any]) -> None:
    services = compose["services"]
    assert {"proxy", "chatbot", "postgres", "milvus", "vllm"} <= services.keys()
    for name, service in services.items():
        assert set(service.get("depends_on", [])) <= services.keys(), name
        assert set(service["networks"]) <= compose["networks"].keys(), name
        assert "image" in service
        assert not service["image"].endswith(":latest"), name
        for volume in service.get("volumes", []):
            source = volume.split(":")[0]
            if source.startswith("."):
                assert (DEPLOY / source).exists(), source
            else:
                assert source in compose["volumes"], source
        for dependency, how in dict_of(service.get("depends_on")).items():
            if how.get("condition") == "service_healthy":
                assert "healthcheck" in services[dependency] or dependency == "chatbot"
    assert list(services["proxy"]["ports"]) and "ports" not in services["postgres"]


def dict_of(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def test_the_settings_in_the_compose_file_are_ours(compose: dict[str, Any]) -> None:
    given = {
        name: _filled(value)
        for name, value in compose["services"]["chatbot"]["environment"].items()
    }
    settings = load_settings({}, environ=given)
    assert settings.api and settings.behind_proxy
    assert settings.engine_url == "http://vllm:8000/v1"
    assert settings.database_url is not None
    assert settings.database_url.get_secret_value().startswith("postgresql://chatbot:x@postgres")
    dockerfile = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")
    for name in re.findall(rf"{ENV_PREFIX}(\w+)=", dockerfile):
        assert name.lower() in Settings.model_fields


def _filled(value: str) -> str:
    def fill(match: re.Match[str]) -> str:
        return match[3] if match[2] == ":-" else "x"

    return BLANK.sub(fill, value)


def test_every_blank_is_explained_in_the_example() -> None:
    text = (DEPLOY / "compose.yaml").read_text(encoding="utf-8")
    example = (DEPLOY / "env.example").read_text(encoding="utf-8")
    explained = {line.partition("=")[0] for line in example.splitlines() if "=" in line}
    assert {match[1] for match in BLANK.finditer(text)} == explained


def test_what_the_image_copies_is_there() -> None:
    dockerfile = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")
    for line in dockerfile.splitlines():
        if line.startswith("COPY "):
            for source in line.split()[1:-1]:
                assert (ROOT / source).exists(), source


def test_replicas_that_share_a_folder_have_their_passing_files_apart() -> None:
    alone = Settings(data_dir=Path("/data"))
    shared = alone.model_copy(update={"database_url": SecretStr("postgresql://x")})
    assert scratch_folder(alone) == Path("/data")
    first = scratch_folder(shared)
    assert first.parent == Path("/data/replicas")
    assert scratch_folder(shared.model_copy(update={"port": 7861})) != first


class Quiet(ThreadingHTTPServer):
    """A proxy hangs up in the middle of its looks, which is no news."""

    daemon_threads = True

    def handle_error(self, *_: object) -> None: ...


class Replica:
    """Serves, and is ready when it is told so."""

    def __init__(self, name: str) -> None:
        self.asked: Counter[str] = Counter()
        self.is_ready = False
        replica = self

        class Answers(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                replica.asked[self.path] += 1
                unready = self.path == "/readyz" and not replica.is_ready
                self.send_response(503 if unready else 200)
                self.send_header("content-length", str(len(name)))
                self.end_headers()
                self.wfile.write(name.encode())

            def log_message(self, *_: object) -> None: ...

        self._server = Quiet(("127.0.0.1", 0), Answers)
        self.port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@contextmanager
def proxied(folder: Path, replicas: list[Replica]) -> Iterator[str]:
    """The proxy by its file, which looks at these replicas every 30 ms in place of 5 seconds."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    servers = "\n".join(f"    server r{r.port} 127.0.0.1:{r.port} check" for r in replicas)
    text = (DEPLOY / "haproxy.cfg").read_text(encoding="utf-8")
    text = text.replace("bind :8080", f"bind 127.0.0.1:{port}").replace("inter 5s", "inter 30ms")
    text = text.replace(" resolvers docker init-addr none", "")
    text = text.replace("timeout connect 5s", "timeout connect 5s\n    timeout check 5s")
    file = folder / "haproxy.cfg"
    file.write_text(re.sub(r"    server-template .*", servers, text), encoding="utf-8")
    running = subprocess.Popen(["haproxy", "-db", "-f", str(file)], stderr=subprocess.PIPE)
    try:
        yield f"http://127.0.0.1:{port}/"
    finally:
        running.terminate()
        running.communicate(timeout=20)


def until(check: Callable[[], bool]) -> None:
    end = time.monotonic() + 30
    while not check():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_the_proxy_lets_people_in_where_no_replica_is_ready(tmp_path: Path) -> None:
    """All lack the same, such as the model's server; each browser stays where it was after that."""
    if shutil.which("haproxy") is None:
        pytest.skip("needs haproxy")
    replicas = {name: Replica(name) for name in ("a", "b")}
    with (
        proxied(tmp_path, list(replicas.values())) as url,
        httpx.Client(base_url=url, trust_env=False, verify=False, timeout=20) as browser,
    ):

        def looked_at() -> None:
            """Until enough of what a replica says now has been seen."""
            before = {name: replica.asked["/readyz"] for name, replica in replicas.items()}
            until(lambda: all(r.asked["/readyz"] >= before[n] + 6 for n, r in replicas.items()))

        def answered_by() -> set[str]:
            answers = [browser.get("/") for _ in range(6)]
            assert [answer.status_code for answer in answers] == [200] * 6
            return {answer.text for answer in answers}

        looked_at()
        (mine,) = answered_by()
        (other,) = replicas.keys() - {mine}
        for replica in replicas.values():
            replica.is_ready = True
        looked_at()
        assert answered_by() == {mine}
        replicas[mine].is_ready = False
        looked_at()
        assert answered_by() == {other}
    for replica in replicas.values():
        replica.close()
