"""Kind `date`: a calendar day with its year, in any form that has one reading."""

import re
from dataclasses import dataclass
from datetime import date

from mcptrials.graders.answer.options import Options
from mcptrials.graders.answer.verdict import AnswerMatch, matched, missed
from mcptrials.graders.answer.wording import innermost, spaced

_MONTHS = ("january", "february", "march", "april", "may", "june", "july", "august", "september", "october",
           "november", "december")  # fmt: skip
_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_WEEKDAY = r"(?:(?P<weekday>(?:mon|tue|wed|thu|fri|sat|sun)[a-z]{0,6})\.?,? )?"
_NAMED = (
    re.compile(_WEEKDAY + r"(?P<m>[a-z]{3,9})\.? (?P<d>[0-9]{1,2})(?:st|nd|rd|th)?,? (?P<y>[0-9]{4})", re.IGNORECASE),
    re.compile(
        _WEEKDAY
        + r"(?:the )?(?P<d>[0-9]{1,2})(?:st|nd|rd|th)?\.?[ -](?:of )?(?P<m>[a-z]{3,9})\.?,?[ -](?P<y>[0-9]{4})",
        re.IGNORECASE,
    ),
    re.compile(r"(?P<weekday>)(?P<y>[0-9]{4})[ -](?P<m>[a-z]{3,9})\.?[ -](?P<d>[0-9]{1,2})", re.IGNORECASE),
)
_YEAR_FIRST = re.compile(r"([0-9]{4})([-/.])([0-9]{1,2})\2([0-9]{1,2})|([0-9]{4})([0-9]{2})([0-9]{2})")
_YEAR_LAST = re.compile(r"([0-9]{1,2})([-/.])([0-9]{1,2})\2([0-9]{4})")
_MIDNIGHT = re.compile(r"[T ]00:00(?::00(?:\.0{1,9})?)?(?: ?(?:Z|UTC|GMT|[+-]00:?00))?$", re.IGNORECASE)
_TIME = re.compile(r"[T ,]+[0-9]{1,2}:[0-9]{2}\b.*$", re.IGNORECASE | re.DOTALL)
_BEFORE = re.compile(r"(?:it (?:is|was) |(?:the )?date(?: is|:) )?(?:on )?", re.IGNORECASE)
_SHORTEST = 3
_MAX_CHARS = 60


@dataclass(frozen=True, slots=True)
class Days:
    """The readings of a date: one, two that differ in the order of day and month, or none."""

    first: date | None
    other: date | None = None

    @property
    def one(self) -> date | None:
        """The day, if there is no other reading."""
        return self.first if self.other in (None, self.first) else None


def problem(expected: str, options: Options) -> str | None:
    """Why it cannot be what is expected."""
    return None if _wanted(expected, options) else "it is no date with one reading, such as 2024-03-05"


def compare(expected: str, forms: list[str], options: Options) -> AnswerMatch:
    """Whether an answer is the expected day."""
    wanted, text = _wanted(expected, options), _BEFORE.sub("", spaced(forms[-1]), count=1)
    if wanted is None or len(text) > _MAX_CHARS:
        return missed(expected, forms[0])
    found = read_days(_MIDNIGHT.sub("", text), options.dayfirst)
    if found.one == wanted:
        return matched(expected, "as a date")
    if wanted in (found.first, found.other):
        return missed(expected, forms[0], "if day and month are read in that order: set dayfirst")
    if read_days(_TIME.sub("", text), options.dayfirst).one == wanted:
        return missed(expected, forms[0], "without the time of day")
    less = text.casefold() in (f"{wanted:%B %Y}".casefold(), f"{wanted:%b %Y}".casefold(), f"{wanted:%Y-%m}")
    without_year = read_days(f"{text} {wanted.year}", options.dayfirst).one == wanted
    return missed(expected, forms[0], "less precisely" if less or without_year else None)


def read_days(text: str, dayfirst: bool | None) -> Days:
    """The days that a text may mean."""
    if found := _YEAR_FIRST.fullmatch(text):
        return Days(_day(found[1] or found[5], found[3] or found[6], found[4] or found[7]))
    if found := _YEAR_LAST.fullmatch(text):
        by_month, by_day = _day(found[4], found[1], found[3]), _day(found[4], found[3], found[1])
        if dayfirst is not None:
            return Days(by_day if dayfirst else by_month)
        return Days(by_month, by_day) if by_month else Days(by_day)
    for pattern in _NAMED:
        if found := pattern.fullmatch(text):
            return Days(_named_day(found))
    return Days(None)


def _named_day(found: re.Match[str]) -> date | None:
    month = _named(found["m"], _MONTHS)
    day = _day(found["y"], str(month), found["d"]) if month else None
    if day and found["weekday"] and _named(found["weekday"], _DAYS) != day.isoweekday():
        return None
    return day


def _named(word: str, names: tuple[str, ...]) -> int | None:
    """The number of a month or weekday, by its name or the beginning of it."""
    word = word.casefold()
    return next((at for at, name in enumerate(names, 1) if len(word) >= _SHORTEST and name.startswith(word)), None)


def _day(year: str, month: str, day: str) -> date | None:
    try:
        return date(int(year), int(month), int(day))
    except ValueError:
        return None


def _wanted(expected: str, options: Options) -> date | None:
    return read_days(spaced(innermost(expected)), options.dayfirst).one
