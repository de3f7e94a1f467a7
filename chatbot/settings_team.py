"""The settings by which a team outgrows one machine; a person alone needs none of them.

`chatbot.settings` joins them with the others. What holds a password or a key is a SecretStr, so
that it is in no log and no repr.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, SecretStr


class TeamSettings(BaseModel):
    """Where the engine, the conversations and the vectors are, when they are elsewhere."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    # Remote engine
    engine_url: str | None = Field(
        None,
        description="an OpenAI-compatible server that makes the replies, such as "
        "http://host:8000/v1; then --model names the model there",
    )
    api_key: SecretStr | None = Field(
        None, description="the key for --engine-url; better given by the environment"
    )

    engine_timeout_s: float = Field(
        300.0,
        gt=0,
        le=86_400,
        description="longest time without a word of the reply from the server at --engine-url, in "
        "seconds",
    )

    # API
    api: bool = Field(False, description="serve an OpenAI-compatible API beside the page")
    api_keys: Path | None = Field(
        None,
        description="file of the API's keys, made by 'key add' (default: api-keys.txt in the data "
        "folder); needed with a --host that others can reach",
    )

    public_host: str | None = Field(
        None,
        description="the name by which people open the page, without a port, where that is not "
        "this machine's own name: such as chat.example.org, or the name of a proxy in front",
    )

    # Conversations
    database_url: SecretStr | None = Field(
        None,
        description="where conversations are kept, such as postgresql://user:password@host/name; "
        "none: in a file of the data folder",
    )

    # Watching
    metrics_token: SecretStr | None = Field(
        None,
        description="the bearer token with which Prometheus may read /metrics; none: nobody may",
    )
    log_format: Literal["text", "json"] = Field(
        "text",
        description="json: what happens is logged on stderr, a line of JSON each, without any "
        "text of chats or documents; text: only with --debug",
    )

    # Vectors
    vector_url: SecretStr | None = Field(
        None,
        description="where documents are indexed: a Milvus server such as "
        "http://user:password@host:19530, or a file that ends in .db; none: in the data folder",
    )

    def in_folder(self, folder: Path) -> Self:
        """The same, but all that is kept is in a data folder of its own: for what is only tried."""
        return self.model_copy(
            update={"data_dir": folder, "database_url": None, "vector_url": None}
        )
