"""Takes the secrets out of an entry: what remains may be written, shown and committed."""

import re
from collections.abc import Callable, Mapping
from dataclasses import replace

from mcptrials.redaction import MIN_LENGTH, SECRET_NAME, Redactor, looks_secret
from mcptrials.starter.entry import Entry
from mcptrials.starter.harmless import harmless, issued_parts, looks_issued
from mcptrials.starter.variables import Variables

_REFERENCE = re.compile(r"(\$\{[A-Za-z_][A-Za-z0-9_]*\})")
_REPLACED = re.compile(r"\$\{[^{}]*\}|\{project_dir\}(/[A-Za-z_.][\w. -]{0,40})*")
"""What stood between the braces of a placeholder was no value; nor are the folders of the project."""
_SCHEME = re.compile(r"\b(Bearer|Basic|Token|ApiKey)(\s+)((?:[^\s\"'$]|\$(?!\{))+)", re.IGNORECASE)
_ASSIGNED = re.compile(r"(-{0,2}([A-Za-z][\w.-]*)=)(.+)", re.DOTALL)
_HEADER = re.compile(r"(([A-Za-z][\w-]*):\s*)(.+)", re.DOTALL)
_QUOTED = re.compile(r"(?<![\w.-])(([A-Za-z][\w.-]*)[\"']?\s*[:=]\s*([\"']))((?:(?!\3)[^\\]|\\.)+)(?=\3)")
_BARE = re.compile(r"(?<![\w.-])(([A-Za-z][\w.-]*)=)((?:[^\s\"',;&{}$]|\$(?!\{))+)")
_LOGIN = re.compile(r"(?<![\w/:.-])((?!npm:|jsr:|git:|file:)[\w.-]+:)([^@\s:/$]+)(?=@[\w(\[])")
"""`user:password@host` without a scheme, as some databases are named."""
_URL = re.compile(r"(?<![A-Za-z0-9+.-])[A-Za-z][A-Za-z0-9+.-]*://[^\s\"'<>]+")
_USER = re.compile(r"(://)([^/@?#]*)(?=@)")
_QUERY = re.compile(r"([?&;#]([^=&;#?]+)=)([^&;#]+)")
_STEP = re.compile(r"(?<=[/#])[^/?#@]+")
_MAX_SEARCHED = 4096
"""Longer values are looked for as they are only: every encoding of them takes long."""
_PUBLIC_HEADERS = {"accept-encoding", "accept-language", "user-agent"}


def without_secrets(entry: Entry, variables: Variables) -> Entry:
    """The entry with `${NAME}` wherever a secret stood."""
    hider = _Hider(entry, variables)
    env = {name: hider.setting(name, value) for name, value in entry.env.items()}
    headers = {name: hider.header(name, value) for name, value in entry.headers.items()}
    args = hider.arguments(entry.args)
    url = None if entry.url is None else hider.url(entry.url)
    again = hider.again(
        Redactor({name: each for name, each in variables.secrets.items() if len(each) <= _MAX_SEARCHED})
    )
    return replace(
        entry,
        args=tuple(map(again, args)),
        env={name: again(value) for name, value in env.items()},
        headers={name: again(value) for name, value in headers.items()},
        url=url if url is None else again(url),
    )


class _Hider:
    """Finds the secrets of one entry by their names, their places and their looks."""

    def __init__(self, entry: Entry, variables: Variables) -> None:
        self._entry, self._variables = entry, variables

    def take(self, hint: str, value: str) -> str:
        if _REFERENCE.fullmatch(value):
            return value
        return self._variables.take(hint, value, self._entry.name)

    def _harmless(self, name: str, value: str) -> bool:
        return _REPLACED.fullmatch(value) is not None or harmless(name, value, self._entry.base)

    def setting(self, name: str, value: str) -> str:
        """Everything that is not plainly harmless."""
        if self._harmless(name, value):
            return value
        return self.parts(value) if _REFERENCE.search(value) else self.take(name, value)

    def header(self, name: str, value: str) -> str:
        if name.lower() in _PUBLIC_HEADERS and not looks_issued(value):
            return value
        hidden = self._schemes(value)
        return hidden if hidden != value else self.setting(name, value)

    def arguments(self, args: tuple[str, ...]) -> list[str]:
        hidden, option = [], ""
        for arg in args:
            named = SECRET_NAME.search(option) is not None and not arg.startswith("-")
            hidden.append(self.setting(option, arg) if named else self.parts(arg))
            option = arg if arg.startswith("-") and "=" not in arg else ""
        return hidden

    def parts(self, text: str) -> str:
        """Of a text without a name of its own: what its parts are named, and what looks issued."""
        for pattern in (_ASSIGNED, _HEADER):
            match = pattern.fullmatch(text)
            if match and "://" not in match[1] and self._is_telling(match[2], match[3]):
                return match[1] + self.header(match[2], match[3])
        text = self._schemes(_URL.sub(lambda match: self.url(match.group()), text))
        text = _LOGIN.sub(lambda match: match[1] + self.take(self._own("password"), match[2]), text)
        text = _QUOTED.sub(lambda match: match[1] + self._named(match[2], match[4]), text)
        text = _BARE.sub(lambda match: match[1] + self._named(match[2], match[3]), text)
        return self._issued(text)

    def _schemes(self, text: str) -> str:
        return _SCHEME.sub(lambda match: match[1] + match[2] + self.take(self._own("token"), match[3]), text)

    def _is_telling(self, name: str, value: str) -> bool:
        """Whether the name says that the value is a secret, or is one of an environment."""
        telling = SECRET_NAME.search(name) is not None or (name.isupper() and len(name) > 1)
        return telling and not self._harmless(name, value)

    def _named(self, name: str, value: str) -> str:
        return self.take(name, value) if self._is_telling(name, value) else value

    def _issued(self, text: str) -> str:
        if harmless("", text, self._entry.base):
            return text
        for part in issued_parts(_REFERENCE.sub(" ", text)):
            text = text.replace(part, self.take(self._own("secret"), part))
        return text

    def _own(self, what: str) -> str:
        """The name of what has no name but its server's."""
        return f"{self._entry.name}_{what}"

    def url(self, url: str) -> str:
        """A URL without its password, and without what in its path or query looks like a secret."""
        url = _USER.sub(lambda match: match[1] + self._user(match[2]), url)
        url = _QUERY.sub(lambda match: match[1] + self._query(match[2], match[3]), url)
        return _STEP.sub(lambda match: self._step(match.group()), url)

    def _user(self, text: str) -> str:
        user, colon, password = text.partition(":")
        if not colon:
            return self.take(self._own("user"), user) if user else user
        return f"{user}:{self.take(self._own('password'), password) if password else ''}"

    def _query(self, name: str, value: str) -> str:
        named = SECRET_NAME.search(name) is not None
        secret = not self._harmless(name, value) and (named or looks_secret(name, value))
        return self.take(name, value) if secret else value

    def _step(self, text: str) -> str:
        return self.take(self._own("url_part"), text) if looks_issued(_REFERENCE.sub("", text)) else text

    def again(self, redactor: Redactor) -> Callable[[str], str]:
        """Takes out what was found to be a secret in one place, and stands in another, in whatever encoding."""
        known: Mapping[str, str] = self._variables.secrets

        def hidden(text: str) -> str:
            for name, value in sorted(known.items(), key=lambda item: -len(item[1])):
                if len(value) >= MIN_LENGTH and value in text and not harmless("", value, self._entry.base):
                    pieces = _REFERENCE.split(text)
                    pieces[::2] = [piece.replace(value, f"${{{name}}}") for piece in pieces[::2]]
                    text = "".join(pieces)
            rest = _REFERENCE.sub(" ", text)
            encoded = redactor.find(rest) if len(rest) > MIN_LENGTH else None
            known_value = known.get(encoded or "", "")
            whole = encoded is not None and not harmless("", known_value, self._entry.base)
            return self.take(self._own("secret"), text) if whole and not _REFERENCE.search(text) else text

        return hidden
