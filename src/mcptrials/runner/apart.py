"""Apart: whether trials can run side by side, and be prepared before others have ended, without sharing state."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from mcptrials.environment import EnvironmentSpec, resets_apart, shared_state
from mcptrials.errors import UsageError
from mcptrials.project import ServerConfig

_DATABASE = re.compile(r"^sqlite:|\.(db|db3|sqlite|sqlite3|duckdb)$", re.IGNORECASE)


WORTH_S = 0.25
"""Seconds that a start takes for a server to be started ahead by default."""


@dataclass(frozen=True, slots=True)
class Apart:
    """What the environments of a run's tasks tell of that."""

    shared: tuple[str, ...]
    """State that is no trial's own: such trials run one after the other."""
    resets_apart: bool

    @classmethod
    def of(cls, specs: Iterable[EnvironmentSpec]) -> "Apart":
        specs = list(specs)
        found = dict.fromkeys(each for spec in specs for each in shared_state(spec))
        return cls(tuple(found), all(map(resets_apart, specs)))

    def warning(self, concurrency: int) -> str | None:
        """Why trials run one at a time though more were asked for."""
        if not self.shared or concurrency == 1:
            return None
        what = "trials run one at a time, since they share state outside their directories"
        return f"{what}: {self.shared[0]}"

    def refuse_ahead(self, servers: Mapping[str, ServerConfig]) -> None:
        """Raises:
        UsageError: one is asked to be started ahead that would see the state of other trials.
        """
        for name, config in servers.items():
            if config.isolation == "spare" and self.shared:
                what = f"it would start while another trial uses the state that they share: {self.shared[0]}"
                raise UsageError(what, where=f"servers.{name}.isolation", hint="keep that in {trial_dir}, or use spawn")

    def ahead(
        self, servers: Mapping[str, ServerConfig], start_s: Mapping[str, float], concurrency: int
    ) -> frozenset[str]:
        """The servers to be started before the trial that will use them.

        By default only where trials overlap anyway: a place is made, and a server closed, while another trial runs.
        And only those whose start is worth the CPU that it takes to have one ready.

        Args:
            start_s: how long each took to start.
        """
        safe = concurrency > 1 and self.resets_apart and not self.shared
        return frozenset(
            name
            for name, config in servers.items()
            if config.isolation == "spare"
            or (config.isolation == "auto" and safe and _is_own(config) and start_s[name] >= WORTH_S)
        )


def _is_own(config: ServerConfig) -> bool:
    """Whether a server is a process of the trial's own."""
    return config.command is not None


def suspects(servers: Mapping[str, ServerConfig], concurrency: int) -> list[str]:
    """Databases that servers are given without a trial's directory, in one line each, when trials would share them."""
    return [
        f"server {name!r} is given {word!r}, which trials share, {concurrency} at a time"
        for name, config in servers.items()
        for word in (*config.args, *config.env.values())
        if concurrency > 1 and "{trial_dir}" not in word and _DATABASE.search(word)
    ]
