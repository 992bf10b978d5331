"""The project file's tables as data; the keys are those of the documentation."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import BeforeValidator, Field, field_validator, model_validator

from mcptrials.dialect import Dialect, dialect_of
from mcptrials.environment import EnvironmentSpec
from mcptrials.frozen import Items, UserData, wrong_key
from mcptrials.protocols import Limits
from mcptrials.task import Task

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
                raise wrong_key(key, _LATER[key])
        return data


class ModelConfig(UserData):
    """A model, its endpoint and its sampling settings."""

    model: str
    base_url: str | None = None
    api_key: str | None = None
    headers: dict[str, str] = {}
    settings: dict[str, Any] = {}
    concurrency: int | None = Field(default=None, ge=1)
    schema_: Literal["exact", "openai", "anthropic", "gemini", "llama_cpp"] | None = Field(default=None, alias="schema")
    """Whose dialect the tools are adapted to; `exact` changes nothing. By default the provider's, if it is known."""

    @field_validator("model")
    @classmethod
    def _names_its_adapter(cls, value: str) -> str:
        adapter, colon, name = value.partition(":")
        if not (adapter and colon and name):
            raise ValueError("a model is written ADAPTER:NAME, such as openai:NAME, local:NAME or scripted:FILE")
        return value

    @field_validator("base_url")
    @classmethod
    def _is_an_address(cls, value: str | None) -> str | None:
        if value is not None:
            parts = urlsplit(value)  # raises ValueError itself for brackets that do not close
            if parts.scheme not in ("http", "https") or not parts.hostname:
                raise ValueError("an endpoint is written http://... or https://...")
        return value

    @property
    def adapter(self) -> str:
        """The plug's name; the whole of `module:attr`."""
        adapter = self.model.partition(":")[0]
        return self.model if "/" in adapter or "." in adapter else adapter

    @property
    def dialect(self) -> Dialect:
        return dialect_of(self.adapter, self.base_url, self.schema_)


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
    tasks: Items[Annotated[str, Field(min_length=1)]] = Field(min_length=1)
    preflight: Items[Annotated[Items[str], Field(min_length=1)]] = ()
    """Commands (argv lists) that must pass before any spend."""
    judges: Items[dict[str, Any]] = ()
    seed: int = 0
    max_invalid: float = Field(default=0.05, ge=0, le=1)
    keep_trial_dirs: bool = False
    use: Literal["retry", "unattended"] | None = None
    """Which of pass@k and pass^k heads the report."""
    runs: str = "runs"

    @field_validator("judges")
    @classmethod
    def _judges_come_later(cls, value: Any) -> Any:
        if value:
            raise ValueError("judges are not supported yet; remove the key")
        return value

    def environment_of(self, task: Task) -> EnvironmentSpec:
        """The environment with what a task adds."""
        return (self.environment or EnvironmentSpec()).merged(task.environment)

    def servers_of(self, variant: str) -> dict[str, ServerConfig]:
        """The servers of a variant: every server, with the variant's patches."""
        patches = self.variants[variant]
        return (
            {} if isinstance(patches, str) else {name: self.patched(name, patches.get(name)) for name in self.servers}
        )

    def patched(self, server: str, patch: Mapping[str, Any] | None) -> ServerConfig:
        return ServerConfig.model_validate(self.servers[server].model_dump() | dict(patch or {}))
