"""The secrets of a project file: what `${VAR}` brings in, and what stands in the file itself."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from mcptrials.errors import UsageError
from mcptrials.redaction import SECRET_NAME, Redactor, looks_secret
from mcptrials.source import Keys, Source, dotted
from mcptrials.task import Task

_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_ASSIGNMENT = re.compile(r"-{0,2}([A-Za-z][\w.-]*)\s*[=:]\s*(\S.*)", re.DOTALL)
_SCHEME = re.compile(r"(?:Bearer|Basic|Token)\s+(\S+)", re.IGNORECASE)
_SETTINGS = ("env", "headers")
"""Mappings of names that are the user's, where the value alone can make a secret."""


_QUESTION = {"args", "params", "body"}
"""What a reader asks for: there `key` names a record, not a password."""


class Expander:
    """Fills in `${VAR}` and notes which values are secrets."""

    def __init__(self, source: Source, environ: Mapping[str, str]) -> None:
        self._source, self._environ = source, environ
        self.secrets = _provider_keys(environ)

    def value(self, value: Any, key: Keys = ()) -> Any:
        if isinstance(value, dict):
            return {self.text(name, (*key, name)): self.value(item, (*key, name)) for name, item in value.items()}
        if isinstance(value, list):
            return [self.value(item, (*key, index)) for index, item in enumerate(value)]
        return self.text(value, key) if isinstance(value, str) else value

    def text(self, text: str, key: Keys) -> str:
        return _VARIABLE.sub(lambda match: self._lookup(match.group(1), key), text) if "${" in text else text

    def _lookup(self, name: str, key: Keys) -> str:
        value = self._environ.get(name)
        if value is None:
            what = f"the environment variable {name!r} is not set"
            raise UsageError(what, where=self._source.where(key), hint=f"export {name}=... and run again")
        if looks_secret(name, value, from_environment=True):
            self.secrets[name] = value
        for part_name, part in _parts(value):
            if _named_secret(part_name, part):
                self.secrets.setdefault(f"{name} ({part_name})", part)
        return value

    def scrubbed(self, error: UsageError) -> UsageError:
        """An error that may quote a value, without secrets."""
        text = Redactor(self.secrets).text
        return UsageError(text(error.what), where=error.where, hint=text(error.hint) if error.hint else None)


def literal_secrets(value: Any) -> dict[str, str]:
    """Name -> value of the secrets that stand in an expanded project file."""
    found: dict[str, str] = {}
    for key, name, text in _texts(value, (), ""):
        if key[:2] == ("environment", "readers") and _QUESTION & set(key):
            continue
        secret = looks_secret(name, text) if set(_SETTINGS) & set(key) else _named_secret(name, text)
        if secret and "{trial_dir}" not in text:
            found[dotted(key)] = text
        for part_name, part in _parts(text):
            if _named_secret(part_name, part):
                found[f"{dotted(key)} ({part_name})"] = part
    return found


def task_secrets(tasks: Iterable[Task]) -> dict[str, str]:
    """The same of the readers in task files."""
    readers: dict[str, Any] = {}
    for task in tasks:
        declared = (task.environment or {}).get("readers") or {}
        in_place = {spec.label: spec.settings["read"] for spec in task.graders if "read" in spec.settings}
        readers |= {f"{task.id} {name}": reader for name, reader in (*declared.items(), *in_place.items())}
    return literal_secrets({"environment": {"readers": readers}})


def _named_secret(name: str, text: str) -> bool:
    return SECRET_NAME.search(name) is not None and looks_secret(name, text)


def _texts(value: Any, key: Keys, name: str) -> Iterator[tuple[Keys, str, str]]:
    """Every text with its place and its name: its key, or the option before it in a list of arguments."""
    if isinstance(value, str):
        yield key, name, value
    elif isinstance(value, dict):
        for inner, item in value.items():
            yield from _texts(item, (*key, inner), inner)
    elif isinstance(value, list):
        before = ""
        for index, item in enumerate(value):
            yield from _texts(item, (*key, index), before)
            before = item if isinstance(item, str) and item.startswith("-") else ""


def _parts(text: str) -> Iterator[tuple[str, str]]:
    """What a text holds under a name of its own: `--token=X`, `Bearer X`, the password and query of a URL."""
    if match := _SCHEME.fullmatch(text):
        yield "token", match.group(1)
    if match := _ASSIGNMENT.fullmatch(text):
        yield match.group(1), match.group(2)
        yield from _parts(match.group(2))
    if "://" in text:
        yield from _url_parts(text)


def _url_parts(text: str) -> Iterator[tuple[str, str]]:
    try:
        url = urlsplit(text)
    except ValueError:
        return
    if url.password:
        yield "password", unquote(url.password)
    yield from parse_qsl(url.query)


_PROVIDER_KEYS = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY")


def _provider_keys(environ: Mapping[str, str]) -> dict[str, str]:
    """The keys that models take from the environment by themselves, though the project file does not name them."""
    given = {name: environ.get(name, "") for name in _PROVIDER_KEYS}
    return {name: value for name, value in given.items() if looks_secret(name, value, from_environment=True)}
