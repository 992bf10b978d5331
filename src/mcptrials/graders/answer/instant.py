"""Kind `datetime`: a moment, whatever zone it is written in; without a zone only if that is declared."""

import re
from datetime import UTC, datetime, time, timedelta, timezone

from mcptrials.graders.answer.date import read_days
from mcptrials.graders.answer.options import Options
from mcptrials.graders.answer.verdict import AnswerMatch, matched, missed
from mcptrials.graders.answer.wording import innermost, spaced

_MOMENT = re.compile(
    r"(?P<day>.{8,40}?)(?:T|,? (?:at )?)(?P<h>[0-9]{1,2}):(?P<m>[0-9]{2})"
    r"(?::(?P<s>[0-9]{2})(?:[.,](?P<part>[0-9]{1,9}))?)?"
    r"(?: ?(?P<half>[ap])\.?m\.?)?(?: ?(?P<zone>Z|UTC|GMT|(?:UTC|GMT)?[+-][0-9]{2}:?[0-9]{2}))?",
    re.IGNORECASE,
)
_COMPACT = re.compile(r"([0-9]{8}T[0-9]{2})([0-9]{2})([0-9]{2})", re.IGNORECASE)
_EPOCH = re.compile(r"[0-9]{9,10}|[0-9]{12,13}")
_SECONDS_DIGITS = 10
_MAX_CHARS = 80
_NOON, _DAY_MINUTES = 12, 24 * 60


def problem(expected: str, options: Options) -> str | None:
    """Why it cannot be what is expected."""
    if _read(innermost(expected), options):
        return None
    return "it is no date with a time, such as 2024-03-05T14:00:00Z"


def compare(expected: str, forms: list[str], options: Options) -> AnswerMatch:
    """Whether an answer is the expected moment."""
    wanted, found = _read(innermost(expected), options), _read(forms[-1], options)
    if wanted is None or found is None:
        return missed(expected, forms[0], _looser(wanted, forms[-1], options))
    if (wanted.tzinfo is None) == (found.tzinfo is None):
        return matched(expected, "as a moment") if wanted == found else missed(expected, forms[0])
    assumed = wanted.replace(tzinfo=wanted.tzinfo or UTC) == found.replace(tzinfo=found.tzinfo or UTC)
    return missed(expected, forms[0], "with assume_utc: true" if assumed else None)


def _looser(wanted: datetime | None, text: str, options: Options) -> str | None:
    if wanted is None or options.epoch_ok or not _EPOCH.fullmatch(text):
        return None
    return "with epoch_ok: true" if _since_epoch(text) == wanted.replace(tzinfo=wanted.tzinfo or UTC) else None


def _read(text: str, options: Options) -> datetime | None:
    text = _COMPACT.sub(r"\1:\2:\3", spaced(text))
    if options.epoch_ok and _EPOCH.fullmatch(text):
        return _since_epoch(text)
    found = _MOMENT.fullmatch(text) if len(text) <= _MAX_CHARS else None
    day = read_days(found["day"], options.dayfirst).one if found else None
    clock = _clock(found) if found else None
    zone = _zone(found["zone"]) if found else None
    if found is None or day is None or clock is None or (found["zone"] and zone is None):
        return None
    return datetime.combine(day, clock, zone or (UTC if options.assume_utc else None))


def _clock(found: re.Match[str]) -> time | None:
    hour, part = int(found["h"]), (found["part"] or "").ljust(6, "0")
    if part[6:].strip("0"):
        return None  # finer than what can be compared
    if half := found["half"]:
        if not 1 <= hour <= _NOON:
            return None
        hour = hour % _NOON + (_NOON if half in "pP" else 0)
    try:
        return time(hour, int(found["m"]), int(found["s"] or 0), int(part[:6]))
    except ValueError:
        return None


def _zone(name: str | None) -> timezone | None:
    if name is None:
        return None
    digits = re.sub("[^0-9]", "", name)
    if not digits:
        return UTC
    minutes = int(digits[:2]) * 60 + int(digits[2:])
    if minutes >= _DAY_MINUTES:
        return None
    return timezone(timedelta(minutes=-minutes if "-" in name else minutes))


def _since_epoch(text: str) -> datetime:
    """Seconds, or with more digits milliseconds, since 1970."""
    count = timedelta(seconds=int(text)) if len(text) <= _SECONDS_DIGITS else timedelta(milliseconds=int(text))
    return datetime(1970, 1, 1, tzinfo=UTC) + count
