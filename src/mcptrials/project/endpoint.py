"""URLs and headers of a project file, checked before anything is sent to them."""

import re
from urllib.parse import urlsplit

_HEADER_NAME = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_HEADER_VALUE = re.compile(r"[\x21-\x7e]([\t\x20-\x7e]*[\x21-\x7e])?")
_OURS = ("accept", "content-type", "content-length", "host", "connection", "transfer-encoding", "mcp-session-id")


def check_url(value: str) -> None:
    """Raises:
    ValueError: it is no absolute URL of HTTP.
    """
    try:
        parts = urlsplit(value)
        parts.port  # noqa: B018 - reading it checks it
    except ValueError as exc:
        raise ValueError(f"is no URL: {exc}") from exc
    if parts.scheme.lower() not in ("http", "https") or not parts.hostname or parts.fragment:
        raise ValueError("is an absolute URL such as https://example.org/mcp")
    if not value.isascii() or any(char.isspace() or not char.isprintable() for char in value):
        raise ValueError("is a URL of ASCII characters without spaces: write others in their %-form")


def has_user(url: str) -> bool:
    """Whether a URL says who we are: `https://user:password@host`."""
    return urlsplit(url).username is not None


def check_header(name: str, value: str) -> None:
    """Raises:
    ValueError: HTTP cannot carry it, or it is the client's own. The value is not quoted: it may be a secret.
    """
    if not _HEADER_NAME.fullmatch(name):
        raise ValueError(f"{name!r} is no name of a header")
    if name.lower() in _OURS:
        raise ValueError(f"the header {name!r} is set by the client itself; remove it")
    if not _HEADER_VALUE.fullmatch(value):
        raise ValueError(
            f"the value of {name!r} is empty, or has spaces at its ends, line ends or non-ASCII characters"
        )
