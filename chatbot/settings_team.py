"""The settings by which a team outgrows one machine; a person alone needs none of them.

`chatbot.settings` joins them with the others. What holds a password or a key is a SecretStr, so
that it is in no log and no repr.
"""

from __future__ import annotations

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

    # API
    api: bool = Field(False, description="serve an OpenAI-compatible API beside the page")

    # Conversations
    database_url: SecretStr | None = Field(
        None,
        description="where conversations are kept, such as postgresql://user:password@host/name; "
        "none: in a file of the data folder",
    )

    # Vectors
    vector_url: SecretStr | None = Field(
        None,
        description="where documents are indexed: the address of a Milvus cluster; none: in the "
        "data folder",
    )
