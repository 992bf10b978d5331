"""The secrets of a project file: what `${VAR}` brings in, and what stands in the file itself."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
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
_PLACE = re.compile(r"\{(?:trial_dir|project_dir|python)\}")
_NAME = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}")
_TOKEN = re.compile(r"[^\s{}\[\]*?]{8,}")


_READERS = ("environment", "readers")
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
        if looks_secret(f"{name} {_place_name(key)}", value):
            self.secrets[name] = value
        for part_name, part in _parts(value):
            if _named_secret(part_name, part):
                self.secrets.setdefault(f"{name} ({part_name})", part)
        return value

    def scrubbed(self, error: UsageError, value: Any) -> UsageError:
        """An error that may quote the expanded file, without secrets and what may be one in a wrong place."""
        suspects = {dotted(key): text for key, name, text in _texts(value, (), "") if suspect(name, text)}
        return without_secrets(error, self.secrets | literal_secrets(value) | suspects)


def without_secrets(error: UsageError, secrets: Mapping[str, str]) -> UsageError:
    """The same error, whose text may quote a secret."""
    text = Redactor(secrets).text
    return UsageError(text(error.what), where=error.where and text(error.where), hint=error.hint and text(error.hint))


def refuse_in_names(secrets: Mapping[str, str], names: Sequence[tuple[str, str]]) -> None:
    """A name is written as it is: it tells which record belongs to what.

    Args:
        names: what each is the name of, and the name.

    Raises:
        UsageError: a secret stands in one of them.
    """
    redactor = Redactor(secrets)
    if redactor.find("\0".join(name for _, name in names)) is None:
        return
    for noun, name in names:
        if found := redactor.find(name):
            what = f"the value of {found} stands in the {noun} {redactor.text(name)!r}, which a run shows as it is"
            raise UsageError(what, hint="change one of them; if the value is no secret, give it under another name")


def literal_secrets(value: Any) -> dict[str, str]:
    """Name -> value of the secrets that stand in an expanded project file."""
    found: dict[str, str] = {}
    for key, name, text in _texts(value, (), ""):
        if key[:2] == _READERS and _QUESTION & set(key):
            continue
        named = looks_secret if set(_SETTINGS) & set(key) else _named_secret
        template, place = _template(key), dotted(key)
        if not _PLACE.search(text):
            found |= _numbered(place, [part for part in template.split(text) if named(name, part.strip())])
        for part_name, whole in _parts(text):
            parts = [part for part in template.split(whole) if _named_secret(part_name, part)]
            found |= _numbered(f"{place} ({part_name})", parts)
    return found


def _template(key: Keys) -> re.Pattern[str]:
    """What trials put in place of themselves: the names of a reader's pattern. Elsewhere braces are as they are."""
    names = [name for pattern in key[2:3] for name in _NAME.findall(str(pattern)) if key[:2] == _READERS]
    return re.compile("|".join([_PLACE.pattern, *(re.escape(f"{{{name}}}") for name in names)]))


def _numbered(place: str, secrets: Sequence[str]) -> dict[str, str]:
    return {f"{place} {number}" if number else place: secret for number, secret in enumerate(secrets)}


def task_secrets(tasks: Iterable[Task]) -> dict[str, str]:
    """The same of the readers in task files."""
    readers: dict[str, Any] = {}
    for task in tasks:
        declared = (task.environment or {}).get("readers") or {}
        in_place = {spec.label: spec.settings["read"] for spec in task.graders if "read" in spec.settings}
        readers |= {f"{task.id} {name}": reader for name, reader in (*declared.items(), *in_place.items())}
    return literal_secrets({"environment": {"readers": readers}})


def _place_name(key: Keys) -> str:
    """What the place of a value says about it: its key, and that it is a header."""
    name = next((part for part in reversed(key) if isinstance(part, str)), "")
    return f"{name} credential" if "headers" in key[:-1] else name


def suspect(name: str, text: str) -> bool:
    """Whether a text may be a secret that stands in a wrong place."""
    return _TOKEN.fullmatch(text) is not None and (looks_secret(name, text) or looks_secret("", text))


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
    return {name: value for name, value in given.items() if looks_secret(name, value)}
