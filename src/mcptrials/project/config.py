"""The project file's tables as data; the keys are those of the documentation."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from mcptrials.environment import EnvironmentSpec
from mcptrials.frozen import Items, UserData
from mcptrials.protocols import Limits

_LATER = {
    "url": "servers by 'url' are not supported yet; start the server with 'command'",
    "headers": "servers by 'url' are not supported yet; start the server with 'command'",
    "python": "in-process servers are not supported yet; start the server with 'command'",
}


class ToolsConfig(UserData):
    """Which tools of a server the model sees."""

    allow: Items[str] | None = None
    hide: Items[str] = ()


class ServerConfig(UserData):
    """How to start one server."""

    command: str = Field(min_length=1)
    args: Items[str] = ()
    env: dict[str, str] = {}
    cwd: str | None = None
    era: Literal["auto", "modern", "legacy"] = "auto"
    on_invalid_tool: Literal["stop", "drop"] = "stop"
    tools: ToolsConfig = ToolsConfig()
    writes: Literal["allowed", "denied"] | None = None
    """None: allowed with a declared environment, denied without."""

    @model_validator(mode="before")
    @classmethod
    def _is_supported(cls, data: Any) -> Any:
        for key in data if isinstance(data, Mapping) else ():
            if key in _LATER:
                raise ValueError(_LATER[key])
        return data


class ModelConfig(UserData):
    """A model, its endpoint and its sampling settings."""

    model: str
    base_url: str | None = None
    api_key: str | None = None
    headers: dict[str, str] = {}
    settings: dict[str, Any] = {}
    concurrency: int | None = Field(default=None, ge=1)

    @model_validator(mode="after")
    def _names_its_adapter(self) -> "ModelConfig":
        adapter, colon, name = self.model.partition(":")
        if not (adapter and colon and name):
            raise ValueError(f"model {self.model!r} names no adapter; write openai:NAME, local:NAME or scripted:FILE")
        return self


class HostConfig(UserData):
    """A host and its settings."""

    host: str
    settings: dict[str, Any] = {}


def _model(value: Any) -> Any:
    return {"model": value} if isinstance(value, str) else value


def _host(value: Any) -> Any:
    if isinstance(value, str):
        return {"host": value}
    if isinstance(value, Mapping) and "settings" not in value:
        return {"host": value.get("host"), "settings": {key: value[key] for key in value if key != "host"}}
    return value


Variant = dict[str, dict[str, Any]] | Literal["none"]
"""Patches by server name, or `none`: no server at all."""


class ProjectConfig(UserData):
    """`mcptrials.yaml`."""

    version: Literal[1]
    servers: dict[str, ServerConfig] = Field(min_length=1)
    variants: dict[str, Variant] = Field(default={"base": {}}, min_length=1)
    environment: EnvironmentSpec | None = None
    models: Items[Annotated[ModelConfig, BeforeValidator(_model)]] = Field(min_length=1)
    hosts: Items[Annotated[HostConfig, BeforeValidator(_host)]] = Field(
        default=(HostConfig(host="loop"),), min_length=1
    )
    trials: int = Field(default=5, ge=1, le=10_000)
    concurrency: int = Field(default=8, ge=1, le=1000)
    limits: Limits = Limits()
    tasks: Items[str] = Field(min_length=1)
    preflight: Items[Items[str]] = ()
    """Commands (argv lists) that must pass before any spend."""
    judges: Items[dict[str, Any]] = ()
    seed: int = 0
    max_invalid: float = Field(default=0.05, ge=0, le=1)
    keep_trial_dirs: bool = False
    use: Literal["retry", "unattended"] | None = None
    """Which of pass@k and pass^k heads the report."""
    runs: str = "runs"

    @model_validator(mode="after")
    def _variants_patch_known_servers(self) -> "ProjectConfig":
        for name, variant in self.variants.items():
            for server in variant if isinstance(variant, dict) else ():
                if server == "overrides":
                    raise ValueError(f"variant {name!r}: description overrides are not supported yet")
                if server not in self.servers:
                    raise ValueError(f"variant {name!r} patches server {server!r}; servers: {', '.join(self.servers)}")
        if self.judges:
            raise ValueError("judges are not supported yet; remove the key")
        return self

    def servers_of(self, variant: str) -> dict[str, ServerConfig]:
        """The servers of a variant: every server, with the variant's patches."""
        patches = self.variants[variant]
        if patches == "none":
            return {}
        assert isinstance(patches, dict)  # noqa: S101 - narrows the type
        return {
            name: ServerConfig.model_validate(server.model_dump() | patches.get(name, {}))
            for name, server in self.servers.items()
        }
