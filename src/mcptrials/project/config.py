"""The project file's tables as data; the keys are those of the documentation."""

import re
from collections.abc import Mapping
from pathlib import PurePath
from typing import Annotated, Any, Literal, TypeVar
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, field_validator, model_validator

from mcptrials.dialect import Dialect, dialect_of
from mcptrials.environment import EnvironmentSpec
from mcptrials.frozen import Items, UserData, whole_number, wrong_key
from mcptrials.overrides import Naming
from mcptrials.project.endpoint import check_header, check_url, has_user
from mcptrials.protocols import Limits
from mcptrials.servers.asking import Answer, ClientPolicy, ElicitationPolicy, RootsPolicy, SamplingPolicy
from mcptrials.servers.sandbox import Sandbox, SandboxKey
from mcptrials.task import MAX_TRIALS, Task

T = TypeVar("T")


class ToolsConfig(UserData):
    """Which tools of a server the model sees."""

    allow: Items[str] | None = None
    hide: Items[str] = ()
    prefix: Literal["collision", "always"] = "collision"
    """When the server's name stands before a tool's: where two servers have a tool of that name, or always."""
    inject: dict[str, dict[str, Any]] = {}
    """Fixed arguments, by tool (`*`: every tool that takes them), which the model neither sees nor sends."""


SERVER_KINDS = {
    "command": ("args", "env", "cwd", "sandbox"),
    "url": ("headers", "token_command", "ca_file"),
    "python": (),
}
"""The keys of which a server has exactly one, and what goes with each."""


_PYTHON = re.compile(r"python[0-9.]*t?")


class ServerConfig(UserData):
    """How to start one server, or where it is."""

    command: str | None = Field(default=None, min_length=1)
    args: Items[str] = ()
    env: dict[str, str] = {}
    cwd: str | None = None
    sandbox: SandboxKey | None = None
    """What its process may read, write and use up; None: what the project's `sandbox` says."""
    url: str | None = None
    headers: dict[str, str] = {}
    token_command: Items[str] | None = Field(default=None, min_length=1)
    ca_file: str | None = None
    python: str | None = None
    era: Literal["auto", "modern", "legacy"] = "auto"
    on_invalid_tool: Literal["stop", "drop"] = "stop"
    list_changed: Literal["frozen", "refresh"] = "frozen"
    """Whether the model sees a tool list that changes during a trial, or the one that the trial began with."""
    elicitation: ElicitationPolicy | None = None
    """What the server gets when it asks the user something; unset: declined, and not declared as a capability."""
    sampling: SamplingPolicy | None = None
    """The same when it asks for a model's message."""
    roots: RootsPolicy = "none"
    """Which directories the client gives the server; none is not declared as a capability."""
    answers: Items[Answer] = ()
    """What a scripted policy answers: the first whose text stands in the message; without one, it declines."""
    tools: ToolsConfig = ToolsConfig()
    isolation: Literal["auto", "spawn", "spare", "fork"] = "auto"
    """When the trial's process is started: when the trial begins, or before; auto: before where that is safe. Or it is
    forked from one that has imported its modules, which does for servers written in Python."""
    preload: Items[Annotated[str, Field(pattern=r"^[A-Za-z_]\w*(\.[A-Za-z_]\w*)*$")]] | None = None
    """What is imported before it is forked; None: what its script imports at its top, but for its own files."""
    writes: Literal["allowed", "denied"] | None = None
    """None: allowed with a declared environment, denied without."""

    @field_validator("url")
    @classmethod
    def _is_http(cls, value: str | None) -> str | None:
        if value is not None:
            check_url(value)
        return value

    @field_validator("headers")
    @classmethod
    def _are_headers(cls, value: dict[str, str]) -> dict[str, str]:
        for name, text in value.items():
            check_header(name, text)
        return value

    @field_validator("python")
    @classmethod
    def _names_a_factory(cls, value: str | None) -> str | None:
        if value is not None and not all(value.rpartition(":")):
            raise ValueError("a factory is written module:function or ./file.py:function")
        return value

    @model_validator(mode="after")
    def _is_of_one_kind(self) -> "ServerConfig":
        kinds = [kind for kind in SERVER_KINDS if getattr(self, kind) is not None]
        if len(kinds) != 1:
            found = f"not {' and '.join(kinds)}" if kinds else "and has none"
            raise ValueError(f"a server has one of 'command', 'url' and 'python', {found}")
        for kind, keys in SERVER_KINDS.items():
            for key in keys if kind != kinds[0] else ():
                if getattr(self, key):
                    raise ValueError(f"'{key}' goes with '{kind}', not with '{kinds[0]}'")
        return self

    @model_validator(mode="after")
    def _can_be_started_ahead(self) -> "ServerConfig":
        if self.isolation == "spare" and self.command is None:
            raise ValueError("'isolation: spare' goes with 'command'; remove it: there is no process to start ahead")
        return self

    @model_validator(mode="after")
    def _can_be_forked(self) -> "ServerConfig":
        if self.preload is not None and self.isolation != "fork":
            raise ValueError(f"'preload' goes with 'isolation: fork', not with '{self.isolation}'")
        if self.isolation != "fork":
            return self
        script = len(self.args) > 1 if self.args[:1] == ("-m",) else bool(self.args) and self.args[0][:1] != "-"
        if self.command is None or not (self.command == "{python}" or _PYTHON.fullmatch(PurePath(self.command).name)):
            what = f"not with {self.command!r}" if self.command else "started by 'command'"
            raise ValueError(f"'isolation: fork' goes with a Python interpreter, {what}; use 'spawn' or 'spare'")
        if not script:
            what = "'isolation: fork' needs a script, or -m and a module, as the first of 'args'"
            raise ValueError(f"{what}; give options of Python as variables in 'env', or use 'spawn'")
        return self

    @model_validator(mode="after")
    def _says_once_who_we_are(self) -> "ServerConfig":
        who = {
            "'token_command'": self.token_command,
            "the header 'Authorization'": any(name.lower() == "authorization" for name in self.headers),
            "the user in 'url'": self.url and has_user(self.url),
        }
        if len(said := [what for what, is_there in who.items() if is_there]) > 1:
            raise ValueError(f"both {said[0]} and {said[1]} say who we are; remove one")
        return self

    @model_validator(mode="after")
    def _answers_what_is_asked(self) -> "ServerConfig":
        if self.answers and "scripted" not in (self.elicitation, self.sampling):
            raise ValueError("'answers' goes with 'elicitation: scripted' or 'sampling: scripted'")
        return self

    @property
    def client_policy(self) -> ClientPolicy:
        return ClientPolicy(
            elicitation=self.elicitation, sampling=self.sampling, roots=self.roots, answers=self.answers
        )

    def patched(self, patch: Mapping[str, Any]) -> "ServerConfig":
        """With the keys of a variant; one that starts the server in another way drops the keys of the old way."""
        kept = self.model_dump()
        if any(getattr(self, kind) is None for kind in SERVER_KINDS.keys() & patch.keys()):
            kept = {key: kept[key] for key in kept if key not in _KIND_KEYS}
        return ServerConfig.model_validate(kept | dict(patch))


_KIND_KEYS = {*SERVER_KINDS, *(key for keys in SERVER_KINDS.values() for key in keys)}


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


NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


def _names(value: dict[str, T]) -> dict[str, T]:
    """Names become parts of file names, of the names that models see, and of tables."""
    taken: dict[str, str] = {}
    for name in value:
        if not NAME.fullmatch(name):
            what = f"{name[:80]!r} is no name: 1 to 64 of A-Z a-z 0-9 . _ - that begin with a letter or digit"
            raise wrong_key(name, what)
        if (other := taken.setdefault(name.casefold(), name)) != name:
            raise wrong_key(name, f"{name!r} and {other!r} differ in case only; rename one")
    return value


def _can_be_a_path(value: str) -> str:
    if "\0" in value:
        raise ValueError("a path holds no NUL character")
    return value


FileName = Annotated[str, AfterValidator(_can_be_a_path)]
Variant = dict[str, dict[str, Any] | str] | Literal["none"]
"""Patches by server name, `overrides: FILE`, `naming`; or `none`: no server at all."""


class ProjectConfig(UserData):
    """`mcptrials.yaml`."""

    version: Literal[1]
    servers: Annotated[dict[str, ServerConfig], AfterValidator(_names)] = Field(min_length=1)
    variants: Annotated[dict[str, Variant], AfterValidator(_names)] = Field(default={"base": {}}, min_length=1)
    naming: Items[Naming] = ()
    """Each variant once by each of these ways to name tools."""
    sandbox: SandboxKey = Sandbox()
    """Of all servers by command that have none of their own."""
    environment: EnvironmentSpec | None = None
    models: Items[Annotated[ModelConfig, BeforeValidator(_model)]] = Field(min_length=1)
    hosts: Items[Annotated[HostConfig, BeforeValidator(_host)]] = Field(
        default=(HostConfig(host="loop"),), min_length=1
    )
    trials: int = Field(default=5, ge=1, le=MAX_TRIALS)
    concurrency: int = Field(default=8, ge=1, le=1000)
    limits: Limits = Limits()
    tasks: Items[Annotated[str, Field(min_length=1), AfterValidator(_can_be_a_path)]] = Field(min_length=1)
    preflight: Items[Annotated[Items[str], Field(min_length=1)]] = ()
    """Commands (argv lists) that must pass before any spend."""
    judges: Items[dict[str, Any]] = ()
    seed: int = 0
    max_invalid: float = Field(default=0.05, ge=0, le=1)
    keep_trial_dirs: bool = False
    broken_tasks: Literal["refuse", "run"] = "refuse"
    """Whether a run begins though a task of it is broken."""
    use: Literal["retry", "unattended"] | None = None
    """Which of pass@k and pass^k heads the report."""
    runs: FileName = "runs"

    _version_is_a_whole_number = field_validator("version", mode="before")(whole_number)

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
        if isinstance(patches, str):
            return {}
        own = {name: patch for name, patch in patches.items() if not isinstance(patch, str)}
        return {name: self.patched(name, own.get(name)) for name in self.servers}

    def told_by(self, variant: str, key: Literal["overrides", "naming"]) -> str | None:
        """What a variant's key says that is no patch of a server."""
        patches = self.variants[variant]
        said = None if isinstance(patches, str) else patches.get(key)
        return said if isinstance(said, str) else None

    def patched(self, server: str, patch: Mapping[str, Any] | None) -> ServerConfig:
        found = self.servers[server].patched(patch or {})
        own = found.sandbox is not None or found.command is None
        return found if own else found.model_copy(update={"sandbox": self.sandbox})
