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
