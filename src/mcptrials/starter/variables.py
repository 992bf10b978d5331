"""Variables: the secrets of the servers, which a project file names as `${NAME}` and never holds."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from mcptrials.redaction import looks_secret
from mcptrials.starter.entry import Entry
from mcptrials.starter.placeholders import variable_name

_REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


def named_variables(text: str) -> frozenset[str]:
    """The variables that a text names."""
    return frozenset(_REFERENCE.findall(text))


@dataclass
class Variables:
    """Environment variables that the project needs, with their values as far as they are known."""

    environ: Mapping[str, str]
    values: dict[str, str | None] = field(default_factory=dict)
    servers: dict[str, str] = field(default_factory=dict)
    """Variable -> the first server that needs it."""
    reserved: frozenset[str] = frozenset()
    """Variables that the project names already, for values that are not known here."""
    _taken: set[str] = field(default_factory=set)

    def refer(self, names: Iterable[str], server: str, env: Mapping[str, str]) -> None:
        """Variables that the source names itself.

        Args:
            env: of the server, which some clients fill into its arguments.
        """
        for name in names:
            own = env.get(name, "${")
            if name not in self.environ and self.values.get(name) is None and "${" not in own:
                self.values[name] = own
                self._taken.add(name)
            self.values.setdefault(name, self.environ.get(name))
            self.servers.setdefault(name, server)

    def take(self, hint: str, value: str, server: str) -> str:
        """The `${NAME}` that stands for a value; equal values are one variable.

        A name that the user's environment gives another value is not taken: the server would get that value.
        """
        for name, known in self.values.items():
            if known == value:
                return f"${{{name}}}"
        wanted, own = variable_name(hint), variable_name(server)
        names = [wanted, f"{own}_{wanted}", *(f"{own}_{wanted}_{number}" for number in range(2, 1000))]
        name = next(name for name in names if self._is_free(name, value))
        self.values[name] = value
        self.servers[name] = server
        self._taken.add(name)
        return f"${{{name}}}"

    def _is_free(self, name: str, value: str) -> bool:
        default = None if name in self.reserved else value
        return name not in self.values and self.environ.get(name, default) == value

    @property
    def secrets(self) -> dict[str, str]:
        """Name -> value, for redaction; what the user's environment gives may be no secret at all."""
        known = {name: value for name, value in self.values.items() if value}
        return {
            name: value
            for name, value in known.items()
            if name in self._taken or looks_secret(name, value, from_environment=True)
        }

    @property
    def unset(self) -> list[str]:
        """What the user must still export."""
        return [name for name in self.values if name not in self.environ]

    def fill(self, text: str) -> str:
        """A text with the values of its variables."""
        return _REFERENCE.sub(lambda match: self.values.get(match[1]) or "", text)

    def needs(self, entry: Entry, name: str) -> bool:
        """Whether an entry names a variable."""
        texts = (entry.command or "", *entry.args, *entry.env.values(), entry.cwd or "", entry.url or "")
        return any(f"${{{name}}}" in text for text in (*texts, *entry.headers.values()))
