"""Kind `url`: one address; case of scheme and host, default ports and a last slash do not count."""

import re
from urllib.parse import SplitResult, urlsplit

from mcptrials.graders.answer.options import Options
from mcptrials.graders.answer.verdict import AnswerMatch, matched, missed
from mcptrials.graders.answer.wording import quoted_only

_LINK = re.compile(r"\[([^\[\]]{0,2000})\]\(([^()\s]{1,2000})\)")
_PORTS = {"http": 80, "https": 443, "ws": 80, "wss": 443, "ftp": 21}
_ESCAPE = re.compile("%[0-9a-fA-F]{2}")


def problem(expected: str, options: Options) -> str | None:
    """Why it cannot be what is expected."""
    return None if _read(quoted_only(expected)[0]) else "it is no URL with scheme and host"


def compare(expected: str, forms: list[str], options: Options) -> AnswerMatch:
    """Whether an answer is the expected address."""
    wanted = _read(quoted_only(expected)[0])
    texts = [each for form in forms for each in _bare(form)]
    found = [each for each in map(_read, texts) if each]
    if wanted is None:
        return missed(expected, forms[0])
    if wanted in found:
        return matched(expected, "as a URL")
    return missed(expected, forms[0], _looser(wanted, texts, found))


def _looser(wanted: SplitResult, texts: list[str], found: list[SplitResult]) -> str | None:
    if any(each._replace(scheme=wanted.scheme) == wanted for each in found):
        return "with another scheme"
    if any(_read(f"{wanted.scheme}://{each}") == wanted for each in texts):
        return "without its scheme"
    if any(each.geturl().casefold() == wanted.geturl().casefold() for each in found):
        return "in another case"
    if any(each._replace(fragment="", query="") == wanted._replace(fragment="", query="") for each in found):
        return "without query and fragment"
    return None


def _bare(text: str) -> list[str]:
    """Out of `<...>`, and out of a Markdown link that shows no other address."""
    if text.startswith("<") and text.endswith(">"):
        text = text[1:-1]
    link = _LINK.fullmatch(text)
    if not link:
        return [text]
    label, target = _read(link[1]), _read(link[2])
    return [link[2]] if label is None or label == target else []


def _read(text: str) -> SplitResult | None:
    if any(char.isspace() for char in text):
        return None
    try:
        parts = urlsplit(text)
        host, port = (parts.hostname or "").removesuffix("."), parts.port
    except ValueError:
        return None
    if not parts.scheme or not host:
        return None
    user = parts.netloc.rpartition("@")[0]
    place = f"{user}@{host}" if user else host
    if port is not None and port != _PORTS.get(parts.scheme):
        place = f"{place}:{port}"
    path = _ESCAPE.sub(lambda escape: escape[0].upper(), parts.path.removesuffix("/"))
    return SplitResult(parts.scheme, place, path, parts.query, parts.fragment)
