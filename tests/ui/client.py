"""Asks the page's server as a browser or a script does, for its tests."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx

from tests.browser.person import Site

UPLOAD = "local/upload"
SECRET = "the secret of another file"


def put(client: httpx.Client, name: str, data: bytes, **headers: str) -> httpx.Response:
    given = {"X-File-Name": name, "Content-Type": "application/octet-stream", **headers}
    return client.post(UPLOAD, content=data, headers=given)


def waiting_files(site: Site) -> list[Path]:
    """Every file of an upload that is still kept."""
    return [p for p in (site.settings.data_dir / "incoming").rglob("*") if p.is_file()]


def trigger(
    client: httpx.Client, event: str, data: dict[str, Any], tab: str = "byhand"
) -> list[dict[str, Any]]:
    """Call a private endpoint by hand, as anyone can; returns what the server says."""
    config = client.get("config").json()
    bridge = next(c["id"] for c in config["components"] if c["props"].get("elem_id") == "bridge")
    index = next(d["id"] for d in config["dependencies"] if [bridge, event] in d["targets"])
    joined = client.post(
        "gradio_api/queue/join",
        json={"data": [""], "fn_index": index, "session_hash": tab, "event_data": data},
    )
    assert joined.status_code == 200, joined.text
    seen: list[dict[str, Any]] = []
    with client.stream("GET", f"gradio_api/queue/data?session_hash={tab}") as stream:
        for line in stream.iter_lines():
            if line.startswith("data:"):
                seen.append(json.loads(line[5:]))
                if seen[-1]["msg"] == "process_completed":
                    break
    return seen


def call(client: httpx.Client, name: str, *data: object) -> tuple[str, Any]:
    """Use a public endpoint as a script does; returns how it ended and the data."""
    begun = client.post(f"gradio_api/call/{name}", json={"data": list(data)})
    assert begun.status_code == 200, begun.text
    with client.stream("GET", f"gradio_api/call/{name}/{begun.json()['event_id']}") as stream:
        lines = [line for line in stream.iter_lines() if line]
    return lines[-2].removeprefix("event: "), json.loads(lines[-1].removeprefix("data: "))


class Wire:
    """A tab of the page without a browser: sends what the page's script would send.

    `heard` is all that the server sent to it.
    """

    def __init__(self, client: httpx.Client, tab: str) -> None:
        self._client = client
        self._tab = tab
        config = client.get("config").json()
        self._ids = {c["props"].get("elem_id"): c["id"] for c in config["components"]}
        self._events = {
            tuple(target): d["id"] for d in config["dependencies"] for target in d["targets"]
        }
        self.heard = ""
        self.chat = ""
        """The chat that the tab shows; the page knows it by its address."""

    def send(self, text: str) -> None:
        """Ask, and wait for the end of the reply."""
        self._run("msg", "submit", [self.chat, text], None)

    def act(self, name: str, **data: object) -> None:
        """Press a button."""
        self._run("bridge", "act", [self.chat], {"act": name, **data})

    def _run(self, widget: str, event: str, data: list[str], details: object) -> None:
        index = self._events[(self._ids[widget], event)]
        asked = {"data": data, "fn_index": index, "session_hash": self._tab, "event_data": details}
        joined = self._client.post("gradio_api/queue/join", json=asked)
        assert joined.status_code == 200, joined.text
        address = f"gradio_api/queue/data?session_hash={self._tab}"
        with self._client.stream("GET", address) as stream:
            for line in stream.iter_lines():
                self.heard += line
                if '"msg": "process_completed"' in line or '"msg":"process_completed"' in line:
                    return
