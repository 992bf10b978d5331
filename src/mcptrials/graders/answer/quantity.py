"""Kind `quantity`: a number with its unit; another unit of the same dimension is converted exactly."""

import re
from dataclasses import dataclass
from fractions import Fraction

from mcptrials.graders.answer import hedge, number
from mcptrials.graders.answer.number import Number
from mcptrials.graders.answer.options import Options
from mcptrials.graders.answer.unit import Unit, find_unit
from mcptrials.graders.answer.verdict import AnswerMatch, hedged, matched, missed
from mcptrials.graders.answer.wording import innermost, on_one_line

_SCALE = re.compile(r" ?(thousand|million|billion|trillion) ")
_SCALES = {"thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12}
_UNIT = re.compile(r"[^\W\d_]?[^\d\s,;:!?<>=~]*(?:[ -][^\W\d_]+){0,2}[23\u00b2\u00b3]?")
_MAX_UNIT = 40


@dataclass(frozen=True, slots=True)
class _Amount:
    number: Number
    unit: str


def problem(expected: str, options: Options) -> str | None:
    """Why it cannot be what is expected."""
    wanted = _read(innermost(expected), decimal_comma=False)
    if wanted is None:
        return "it is no quantity, such as 5 km"
    if not wanted.unit and not options.unit:
        return "it names no unit: write 5 km, or set 'unit'"
    return None


def compare(expected: str, forms: list[str], options: Options) -> AnswerMatch:
    """Whether an answer is the expected quantity."""
    wanted, text = _read(innermost(expected), decimal_comma=False), number.without_copula(on_one_line(forms[-1]))
    found = _read(text, decimal_comma=options.decimal_comma)
    if wanted is None or found is None:
        if doubt := hedge.doubt_about_number(text):
            return hedged(expected, forms[0], f"{doubt!r} makes it uncertain")
        return missed(expected, forms[0])
    asked = wanted.unit or options.unit or ""
    if not found.unit:
        if not number.within(wanted.number, found.number, options):
            return missed(expected, forms[0])
        if options.unit_optional or not asked:
            return matched(expected, "as a quantity without its unit")
        return missed(expected, forms[0], "with unit_optional: true")
    return _compare_units(_Amount(wanted.number, asked), found, (expected, forms[0]), options)


def _compare_units(wanted: _Amount, found: _Amount, texts: tuple[str, str], options: Options) -> AnswerMatch:
    mine, theirs = find_unit(wanted.unit), find_unit(found.unit)
    if mine == theirs and (mine is not None or _counted(wanted.unit) == _counted(found.unit)):
        if number.within(wanted.number, found.number, options):
            return matched(texts[0], "as a quantity")
        return missed(*texts)
    if mine and theirs and mine.dimension == theirs.dimension:
        converted = Number(_converted(found.number, theirs, mine), None)
        if number.within(wanted.number, converted, options):
            return matched(texts[0], f"converted from {found.unit}")
    same = number.within(wanted.number, found.number, options)
    return missed(*texts, "in another unit" if same else None)


def _converted(given: Number, source: Unit, target: Unit) -> Fraction:
    return (given.value * source.factor + source.offset - target.offset) / target.factor


def _counted(unit: str) -> str:
    """What is counted, one or many; short ones are symbols, whose case counts."""
    return unit.casefold().removesuffix("s") if len(unit) > len("kWh") else unit


def _read(text: str, *, decimal_comma: bool) -> _Amount | None:
    found = number.leading(text, decimal_comma=decimal_comma)
    if found is None or number.names_money(text):
        return None
    value, rest = found
    if scale := _SCALE.match(rest):
        value, rest = Number(value.value * _SCALES[scale[1]], 0), rest[scale.end() :]
    unit = rest.strip()
    if len(unit) > _MAX_UNIT or not _UNIT.fullmatch(unit) or (not find_unit(unit) and hedge.doubt_about_number(unit)):
        return None
    return _Amount(value, unit)
