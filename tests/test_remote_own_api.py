"""This program's own API as the server of another one: one speaks what the other understands."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from api_rig import Api
from remote_rig import prompt_of, remote_engine

from chatbot.engine.base import SamplingParams


def test_one_program_is_the_server_of_another(tmp_path: Path) -> None:
    api = Api(tmp_path)
    try:
        with closing(remote_engine(api.base_url, api_key=api.key("other"))) as engine:
            assert engine.info.details["sends"] == "messages"
            assert 1024 < engine.info.max_window_tokens <= 2048
            prompt = prompt_of(engine, "Where is the lighthouse? 등대는 어디예요?")
            *_, last = engine.generate(prompt, SamplingParams(max_tokens=60))
            assert getattr(last, "text", "") == "The lamp of the lighthouse is 16 metres high."
            reported = engine.reported_tokens(prompt)
            assert reported is not None and reported <= len(prompt)
    finally:
        api.close()
