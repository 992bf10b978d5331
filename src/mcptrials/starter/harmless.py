"""What may stand in a file that is shared: settings that are plainly no secrets, and texts that look like some."""

import re
from itertools import pairwise
from pathlib import Path

from mcptrials.redaction import SECRET_NAME

_WORDS = re.compile(
    r"|true|false|yes|no|on|off|none|null|auto|default|stdio|http|debug|info|warn|warning|error|critical|trace|verbose|"
    r"silent|quiet|dev|development|test|testing|staging|prod|production|local|localhost|latest|utf-?8|json|text|"
    r"application/json|text/event-stream|[01]",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"[+-]?\d{1,6}(\.\d{1,6})?|\d{1,3}(\.\d{1,3}){3}(:\d{1,5})?|localhost:\d{1,5}")
_URL = re.compile(r"(?:https?|wss?|sqlite|file)://(?P<rest>[^?#@\s]*)")
_ISSUED = re.compile(
    r"(?:sk-|pk-|rk-|sk_|pk_|rk_|ghp_|gho_|ghs_|ghu_|github_pat_|glpat-|xox[a-z]-|AKIA|ASIA|AIza|eyJ|hf_|npm_|pypi-|"
    r"lin_|ntn_|secret_|dop_v1_|shpat_|SG\.)[\w.-]{8,}"
)
"""How well-known services begin their tokens."""
_HEX = re.compile(r"(?<!sha256:)\b[0-9a-fA-F]{32,}|[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_RUN = re.compile(r"[A-Za-z0-9]{16,}")
_RESTLESS = 4
"""Changes between capitals, small letters and digits in one run of characters that no words have."""


def harmless(name: str, value: str, base: Path) -> bool:
    """Whether a setting is plainly no secret: a usual word, and under an untelling name a number, URL or real path."""
    if _WORDS.fullmatch(value) or _is_path(value, base):
        return True
    if SECRET_NAME.search(name):
        return False
    url = _URL.fullmatch(value)
    return _NUMBER.fullmatch(value) is not None or (url is not None and not looks_issued(url["rest"]))


def _is_path(value: str, base: Path) -> bool:
    """A path, or several, to what is there or could be made there."""
    return all(_is_one_path(part, base) for part in value.split(":")) if "/" in value else False


def _is_one_path(value: str, base: Path) -> bool:
    try:
        path = base / Path(value).expanduser()
        return path.exists() or (len(path.parts) > 2 and path.parent.is_dir() and not looks_issued(path.name))  # noqa: PLR2004 - `/` and a name
    except (OSError, ValueError, RuntimeError):
        return False


def looks_issued(text: str) -> bool:
    """Whether a text holds what a service issued: no person would write such characters."""
    if _ISSUED.search(text) or _HEX.search(text):
        return True
    return any(_restless(run) for run in _RUN.findall(text))


def issued_parts(text: str) -> list[str]:
    """The words of a text that look issued."""
    return [word for word in re.findall(r"[\w.+/=~-]+", text) if looks_issued(word)]


def _restless(run: str) -> bool:
    kinds = ["0" if char.isdigit() else "A" if char.isupper() else "a" for char in run]
    return sum(left != right for left, right in pairwise(kinds)) >= _RESTLESS and "0" in kinds
