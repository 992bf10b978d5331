"""The servers of a variant, made from what the project says of them."""

import sys
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, redirect_stdout
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from mcptrials import plugins
from mcptrials.environment import PythonReader, Reader, TrialPlaces
from mcptrials.environment.command import run_command
from mcptrials.environment.reader import ReadError, last_line
from mcptrials.errors import HarnessError, UsageError
from mcptrials.overrides import Overrides
from mcptrials.presentation import RawTool, read_only
from mcptrials.project import HostConfig, Project, ProjectConfig, ServerConfig
from mcptrials.protocols import Place, Server
from mcptrials.redaction import Redactor, looks_secret
from mcptrials.runner.confining import Confiner
from mcptrials.runner.launch import Launch, LaunchError, find_launch, is_package_runner
from mcptrials.runner.preflight import ServerFacts, no_wire
from mcptrials.servers.confinement import Confinement


@contextmanager
def own_stdout(config: ProjectConfig, readers: Iterable[Reader]) -> Iterator[None]:
    """What the user's Python prints in our process goes to stderr: our stdout may be read by a program."""
    objects = any(server.python for variant in config.variants for server in config.servers_of(variant).values())
    functions = any(isinstance(reader, PythonReader) for reader in readers)
    with redirect_stdout(sys.stderr) if objects or functions else nullcontext():
        yield


def sharing_warning(name: str, config: ServerConfig, shown: Iterable[RawTool], concurrency: int) -> str | None:
    """Trials side by side on one server see each other's changes, unless something tells them apart there."""
    apart = any("{trial_dir}" in text for text in (config.url or "", *config.headers.values()))
    if config.url is None or concurrency == 1 or apart or all(map(read_only, shown)):
        return None
    what = f"server {name!r} runs once for all trials, {concurrency} at a time, and its tools may write"
    return f"{what}: what one trial changes, others see; set concurrency: 1, or name {{trial_dir}} in a header"


def unseen_warning(variant: str, overrides: Overrides, hosts: Iterable[HostConfig]) -> str | None:
    """Our own loop shows models no titles and no annotations, and instructions only where it is told to."""
    loops = [host for host in hosts if host.host == "loop"]
    silent = any(not host.settings.get("instructions") for host in loops)
    said = {key for tool in overrides.tools.values() for key in tool.model_fields_set & {"title", "annotations"}}
    said |= {"instructions"} if overrides.instructions and silent else set()
    if not loops or not said:
        return None
    return f"variant {variant!r} overrides {' and '.join(sorted(said))}, which host loop does not show to the model"


class ServerMaker:
    """Makes the servers of one run; what package runners start is found out once."""

    def __init__(self, project: Project, places: TrialPlaces, redactor: Redactor, warn: Callable[[str], None]) -> None:
        self._places, self._redactor, self._warn, self._where = places, redactor, warn, project.where
        self._connect_s, self._confiner = project.config.limits.connect_seconds, Confiner(project, places)
        self._launches: dict[str, Launch | None] = {}
        self._confined: dict[str, Confinement | None] = {}
        self._forked: dict[str, Forked] = {}

    async def make(self, configs: Mapping[str, ServerConfig]) -> dict[str, Server]:
        """By name.

        Raises:
            UsageError: a factory cannot be loaded.
        """
        return {name: await self._made(name, config) for name, config in configs.items()}

    def with_start(self, facts: ServerFacts, config: ServerConfig) -> ServerFacts:
        """Adds what a server's package runner starts, if it was found out, and the sandbox that is in force."""
        launch, confined = self._launches.get(_key(config)), self._confined.get(_key(config))
        found, in_force = launch.facts() if launch else None, confined.facts() if confined else None
        forked = self._forked.get(_fork_key(facts.server, config))
        return replace(facts, launch=found, sandbox=in_force, fork=forked.facts() if forked else None)

    def close(self) -> None:
        """Ends what servers are forked from."""
        for forked in self._forked.values():
            forked.close()

    def confinement(self, config: ServerConfig) -> Confinement | None:
        """Of a server that was made."""
        return self._confined.get(_key(config))

    async def _made(self, name: str, config: ServerConfig) -> Server:
        if config.url is not None:
            return self._by_url(name, config, config.url)
        if config.python is not None:
            return _in_process(name, config.python, self._places.project_dir, self._where("servers", name, "python"))
        contained = config.sandbox is not None and config.sandbox.mode == "container"
        launch = None if contained else await self._found(name, config)
        confined = self._confined[_key(config)] = self._confiner.confinement(name, config, launch)
        server: Server = plugins.load("servers", "stdio")(
            name=name,
            command=launch.command if launch else config.command,
            args=launch.args if launch else config.args,
            env=config.env,
            cwd=config.cwd,
            confinement=confined,
        )
        return self._fork(name, server, config) if config.isolation == "fork" else server

    def _fork(self, name: str, plain: Server, config: ServerConfig) -> Server:
        """Variants that start it alike share what it is forked from."""
        where = self._where("servers", name, "isolation")
        if sys.platform != "linux":
            raise UsageError("'fork' is for Linux only", where=where, hint="use 'spawn' or 'spare'")
        if config.sandbox is not None and config.sandbox.mode == "container":
            raise UsageError("'fork' does not go with a container", where=where, hint="use 'spawn' or 'spare'")
        load = plugins.load("servers", "fork")
        return self._forked.setdefault(
            _fork_key(name, config), load(plain, config.preload, partial(self._places.make, no_wire))
        )

    def _by_url(self, name: str, config: ServerConfig, url: str) -> Server:
        ca_file = self._places.project_dir / config.ca_file if config.ca_file else None
        if ca_file and not ca_file.is_file():
            raise UsageError(
                f"there is no file {str(ca_file)!r}", where=f"servers.{name}.ca_file", hint="mend the path"
            )
        token = None
        if config.token_command:
            token = plugins.load("servers", "token")(self._ask(name, config.token_command))
        found = {header: self._redactor.find(value) for header, value in config.headers.items()}
        variables = {header: variable for header, variable in found.items() if variable and variable.isidentifier()}
        server: Server = plugins.load("servers", "http")(
            name=name, url=url, headers=config.headers, variables=variables, token=token, ca_file=ca_file
        )
        return server

    def _ask(self, name: str, argv: Sequence[str]) -> Callable[[Place], Awaitable[str]]:
        """Runs the command for a server's token, which is a secret from then on."""

        async def ask(place: Place) -> str:
            where = f"token_command of server {name!r}"
            try:
                code, output, errors = await run_command(map(place.expand, argv), place, self._connect_s)
            except ReadError as exc:
                raise HarnessError("auth", f"{where}: {exc}") from exc
            if code:
                raise HarnessError("auth", f"{where} exited with code {code}: {last_line(errors)}")
            token = output.strip()
            if not token.isascii() or not token.isprintable() or not token or " " in token:
                raise HarnessError("auth", f"{where} should print a token and nothing else")
            if looks_secret("token", token):
                self._redactor.add(f"token of {name}", token)
            return token

        return ask

    async def _found(self, name: str, config: ServerConfig) -> Launch | None:
        command, key = str(config.command), _key(config)
        if not is_package_runner(command, config.args):
            return None
        if key not in self._launches:
            self._launches[key] = await self._find(name, command, config)
        return self._launches[key]

    async def _find(self, name: str, command: str, config: ServerConfig) -> Launch | None:
        place = self._places.make(no_wire)
        try:
            launch = await find_launch(command, config.args, (*config.env, *(("cwd",) if config.cwd else ())), place)
        except (LaunchError, OSError, ValueError) as exc:
            self._warn(f"server {name!r}: {command} starts it anew in every trial, which is slow: {exc}")
            return None
        finally:
            self._places.remove(place)
        if not launch.pinned:
            found = f"{launch.package} {launch.version or 'of unknown version'}"
            self._warn(f"server {name!r}: {command} took {found}; name that version to test the same one next time")
        return launch


def _key(config: ServerConfig) -> str:
    return repr((config.command, config.args, config.env, config.cwd, config.sandbox))


def _fork_key(name: str, config: ServerConfig) -> str:
    return repr((name, _key(config), config.isolation, config.preload))


class Forked(Server, Protocol):
    """A server whose processes are forked from another."""

    def facts(self) -> Mapping[str, Any] | None: ...

    def close(self) -> None: ...


def _in_process(name: str, path: str, project_dir: Path, where: str) -> Server:
    try:
        factory = plugins.load("servers", path, project_dir)
        server: Server = plugins.load("servers", "python")(name, path, factory)
    except UsageError as exc:
        raise UsageError(exc.what, where=where, hint=exc.hint) from exc
    except TypeError as exc:
        raise UsageError(str(exc), where=where) from exc
    return server
