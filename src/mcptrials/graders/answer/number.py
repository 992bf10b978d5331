"""Kind `number`: one number, however it is written, compared exactly or within what its decimals say."""

import re
import unicodedata
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from itertools import islice

from mcptrials.graders.answer import hedge
from mcptrials.graders.answer.options import Options
from mcptrials.graders.answer.verdict import AnswerMatch, hedged, matched, missed
from mcptrials.graders.answer.wording import innermost, on_one_line

MAX_DIGITS = 400
MAX_EXPONENT = 400
"""Larger ones are no business values, and whole numbers of that size cost memory."""
MIN_PLACES = 2
"""A rounded answer needs as many decimals, or all that the expected value has."""

_GROUPED = (
    r"[0-9]{1,3}(?:(?P<sep>[,_' ])[0-9]{3}(?:(?P=sep)[0-9]{3})*)(?![0-9])"
    r"|[0-9]{1,2}(?:,[0-9]{2})+,[0-9]{3}(?![0-9])"
)
_EXPONENT = r"(?:[eE](?P<e>[-+]?[0-9]+)| ?[x*\u00d7\u00b7] ?10(?:\^|\*\*)[({]?(?P<ten>[-+]?[0-9]+)[)}]?)"
_NUMBER = re.compile(
    rf"(?P<sign>[-+] ?)?(?P<cash>[$\u00a3\u20ac\u00a5\u20b9] ?)?(?P<inner>-)?"
    rf"(?:(?:(?P<mixed>[0-9]{{1,40}}) )?(?P<top>[0-9]{{1,40}}) ?/ ?(?P<bottom>[0-9]{{1,40}})(?![0-9.,])"
    rf"|(?:(?P<whole>{_GROUPED}|[0-9]+)(?P<part>\.[0-9]+)?|(?P<only>\.[0-9]+)){_EXPONENT}?)"
)
_STRICT = re.compile(r"[-+]?(?:0|[1-9][0-9]{0,40})(?:\.[0-9]{1,40})?")
_MAGNITUDE = re.compile(
    r"(?: ?(?P<short>[kKMBT]|bn|Bn)|[ -](?P<long>hundred|thousand|lakh|million|crore|billion|trillion|dozen)s?)"
    r"(?![A-Za-z0-9])"
)
_SCALES = {
    "k": 10**3, "K": 10**3, "M": 10**6, "B": 10**9, "T": 10**12, "bn": 10**9, "Bn": 10**9, "hundred": 100,
    "thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12, "dozen": 12,
    "lakh": 10**5, "crore": 10**7,
}  # fmt: skip
_SEPARATORS = re.compile("[,_' ]")
_SUPERSCRIPT = re.compile("(?<=10)[\u207a\u207b]?[\u2070\u00b9\u00b2\u00b3\u2074-\u2079]+")
_RAISED = str.maketrans("\u207a\u207b\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079", "+-0123456789")
_VULGAR = re.compile("([0-9]?) ?([\u00bc-\u00be\u2150-\u215e])")
_COMMA_AND_POINT = str.maketrans(",.", ".,")
_NEGATIVE = re.compile(r"(?:minus|negative) (?=[0-9.$])", re.IGNORECASE)
_COPULA = re.compile(
    r"(?:(?:there|we|i|it|they|that|this)(?:'s| is| are| have| found| see| counted| count)"
    r"|(?:(?:[^\W\d]|['-])+ ){0,8}(?:is|are|equals|found|total|totals|has|have)\b"
    r"|(?:[^\W\d]|[' -]){0,60}(?<![<>!~])(?:=|:))[:=]? ?",
    re.IGNORECASE,
)
_AFTER = re.compile(
    r"(?: ?[$\u00a3\u20ac\u00a5\u20b9](?!\w))?[,;]? ?\(?[A-Za-z][\w'/\u00b0-]*(?: [A-Za-z][\w'-]*){0,7}\)?[.!]?"
    r"|[.,;:!$\u00a3\u20ac\u00a5\u20b9]?"
)
_PERCENT = re.compile(r"%|\u2030|\b(?:per ?cent|percentage|pct|percentile|permille|basis|bps|pp)\b", re.IGNORECASE)
_TIME = re.compile(r" ?(?:[ap]m|[ap]\.m\.?|o'clock)\b", re.IGNORECASE)
_COUNT = re.compile(r"(?:the )?(?:total )?(?:number|count|amount|sum) of (?=\w)", re.IGNORECASE)
"""Names what is counted; elsewhere `of` makes a part of another number."""
_MAX_BEFORE = 80


@dataclass(frozen=True, slots=True)
class Number:
    """A value, and how many decimals it was written with; None if it is a fraction and so exact."""

    value: Fraction
    places: int | None


def problem(expected: str, options: Options) -> str | None:
    """Why it cannot be what is expected."""
    return None if bare(innermost(expected)) else "it is no number, which 'kind: number' and tolerances need"


def compare(expected: str, forms: list[str], options: Options) -> AnswerMatch:
    """Whether an answer gives the expected number, and that one only."""
    wanted, text = bare(innermost(expected)), _legible(on_one_line(forms[-1]))
    if wanted is None:
        return missed(expected, forms[0])
    found = _scanned(text, options)
    if isinstance(found, str):
        looser = _looser(wanted, text, options)
        if not looser and any(_close(wanted, each, options) for each in _all_numbers(text, options)):
            return hedged(expected, forms[0], found)
        return missed(expected, forms[0], looser)
    if _close(wanted, found, options):
        return matched(expected, "as a number")
    return missed(expected, forms[0], _looser(wanted, text, options))


def bare(text: str, *, decimal_comma: bool = False) -> Number | None:
    """The number that a text is, without any word beside it."""
    text = _legible(on_one_line(text))
    text = _NEGATIVE.sub("-", text)
    found = _match(text, decimal_comma)
    if found is None:
        return None
    number, end = found
    scale = _MAGNITUDE.fullmatch(text, end)
    if end < len(text) and not scale:
        return None
    return _scaled(number, scale)


def leading(text: str, *, decimal_comma: bool = False) -> tuple[Number, str] | None:
    """The number at the beginning of a text, and what stands after it."""
    text = _NEGATIVE.sub("-", _legible(on_one_line(text)))
    found = _match(text, decimal_comma)
    return (found[0], text[found[1] :]) if found else None


def strict_decimal(text: str) -> Decimal | None:
    """A number of digits and a point alone, as programs write it: no exponent, leading zero or separator."""
    return Decimal(text) if _STRICT.fullmatch(text) else None


def same_decimal(one: str, other: str) -> bool:
    """Whether two texts are the same number, both strictly written."""
    first, second = strict_decimal(one), strict_decimal(other)
    return first is not None and first == second


def within(wanted: Number, found: Number, options: Options) -> bool:
    """Equal; or within the tolerances if any is given; else as close as the decimals of one of them say."""
    if found.value == wanted.value:
        return True
    apart = abs(found.value - wanted.value)
    if options.abs_tol is not None or options.rel_tol is not None:
        share = exact(options.rel_tol or 0) * abs(wanted.value)
        return apart <= max(exact(options.abs_tol or 0), share)
    if not wanted.places or found.places is None:
        return False
    # A right rounding of the expected value, half up or half even; or more decimals than it was given with.
    if found.places >= wanted.places:
        return apart <= Fraction(1, 2 * 10**wanted.places)
    return found.places >= MIN_PLACES and apart <= Fraction(1, 2 * 10**found.places)


def names_money(text: str) -> bool:
    """Whether a sign of a currency stands in a text."""
    return any(sign in text for sign in "$\u00a3\u20ac\u00a5\u20b9")


def exact(value: float) -> Fraction:
    """A tolerance as it was written."""
    return Fraction(str(value))


def without_copula(text: str) -> str:
    """Without `the total is` and its like before a value."""
    found = _COPULA.match(text[:_MAX_BEFORE])
    return text[found.end() :] if found and not hedge.doubt_about_number(_COUNT.sub("", found[0], count=1)) else text


_close = within


def _scanned(text: str, options: Options) -> Number | str:
    """The one number of a text; or why there is none."""
    comma = options.decimal_comma
    whole = bare(text, decimal_comma=comma)
    if whole is not None:
        return whole
    text = _NEGATIVE.sub("-", text)
    start = next((at for at, char in enumerate(text) if char in "0123456789"), len(text))
    while start and text[start - 1] in ".-+$\u00a3\u20ac\u00a5\u20b9":
        start -= 1
    found = _match(text[start:], comma)
    if found is None:
        return "there is no number"
    number, end = found
    before, after = text[:start], text[start + end :]
    scale = _MAGNITUDE.match(after)
    after = after[scale.end() :] if scale else after
    if any(unicodedata.numeric(char, None) is not None for char in before + after):
        return "there is more than one number"
    if doubt := hedge.doubt_about_number(_COUNT.sub("", before, count=1)) or hedge.doubt_about_number(after):
        return f"{doubt!r} makes it uncertain"
    if _PERCENT.search(after):
        return "it is a percentage"
    if _TIME.match(after):
        return "it is a time of day"
    if not _AFTER.fullmatch(after) or (after and after[0].isalpha()) or not _may_stand_before(before):
        return "other words stand beside the number"
    return _scaled(number, scale)


def _may_stand_before(text: str) -> bool:
    return not text.strip() or (len(text) <= _MAX_BEFORE and bool(_COPULA.fullmatch(text)))


def _match(text: str, decimal_comma: bool) -> tuple[Number, int] | None:
    """The number at the beginning, and where it ends."""
    found = _NUMBER.match(text.translate(_COMMA_AND_POINT) if decimal_comma else text)
    if not found or len(found[0]) > MAX_DIGITS or (found["inner"] and (found["sign"] or not found["cash"])):
        return None
    value, places = _value(found)
    if value is None:
        return None
    negative = (found["sign"] or "").startswith("-") != bool(found["inner"])
    return Number(-value if negative else value, places), found.end()


def _value(found: re.Match[str]) -> tuple[Fraction | None, int | None]:
    if found["top"]:
        bottom = int(found["bottom"])
        whole = int(found["mixed"] or 0)
        return (Fraction(int(found["top"]), bottom) + whole if bottom else None), None
    digits = found["whole"] or "0"
    if found["sep"] or "," in digits:
        digits = _SEPARATORS.sub("", digits)
    part = (found["part"] or found["only"] or ".")[1:]
    exponent = found["e"] or found["ten"] or "0"
    if len(exponent) > len("-999") or abs(int(exponent)) > MAX_EXPONENT:
        return None, None
    places = len(part) - int(exponent)
    whole = int(digits + part)
    return (Fraction(whole, 10**places) if places > 0 else Fraction(whole * 10**-places)), max(0, places)


def _scaled(number: Number, scale: re.Match[str] | None) -> Number:
    if scale is None:
        return number
    factor = _SCALES[scale["short"] or scale["long"]]
    return Number(number.value * factor, 0)


def _legible(text: str) -> str:
    """Raised exponents, vulgar fractions and the digits of one other script, in ASCII."""
    if text.isascii():
        return text
    text = _SUPERSCRIPT.sub(lambda raised: "^" + raised[0].translate(_RAISED), text)
    text = _VULGAR.sub(lambda part: f"{part[1]} {_ratio(part[2])}".strip(), text)
    others = {char for char in text if char.isdecimal() and not char.isascii()}
    zeros = {ord(char) - unicodedata.decimal(char) for char in others}
    if len(zeros) == 1 and not any(char in "0123456789" for char in text):
        text = text.translate({ord(char): str(unicodedata.decimal(char)) for char in others} | {0x66B: ".", 0x66C: ","})
    return text


def _ratio(char: str) -> str:
    return unicodedata.normalize("NFKC", char).replace("\u2044", "/")


def _all_numbers(text: str, options: Options) -> list[Number]:
    """Every number of a text, however it stands there."""
    text = text.translate(_COMMA_AND_POINT) if options.decimal_comma else text
    found = [_match(each[0], decimal_comma=False) for each in islice(_NUMBER.finditer(text), 20)]
    return [each[0] for each in found if each]


def _looser(wanted: Number, text: str, options: Options) -> str | None:
    """The rule by which it would have matched."""
    other = bare(text, decimal_comma=not options.decimal_comma)
    if other and _close(wanted, other, options):
        return "with decimal_comma: true" if not options.decimal_comma else "with decimal_comma: false"
    found = bare(re.sub(r"[^0-9.,eE+-]", "", text))
    if found and text.startswith("(") and _close(wanted, Number(-found.value, found.places), options):
        return "with brackets taken for a minus"
    if found and "%" in text and found.value in (wanted.value, wanted.value * 100):
        return "without the percent sign"
    rounded = bare(text)
    if rounded is None or (rounded.places or 0) >= (wanted.places or 0):
        return None
    near = abs(rounded.value - wanted.value) <= Fraction(1, 2 * 10 ** (rounded.places or 0))
    return f"rounded to {rounded.places} decimals: set abs_tol" if near else None
