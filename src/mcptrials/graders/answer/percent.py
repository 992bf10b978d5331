"""Kind `percent`: a share in percent, with or without its sign."""

import re
from fractions import Fraction

from mcptrials.graders.answer import hedge, number
from mcptrials.graders.answer.number import Number
from mcptrials.graders.answer.options import Options
from mcptrials.graders.answer.verdict import AnswerMatch, hedged, matched, missed
from mcptrials.graders.answer.wording import innermost, on_one_line

_SIGN = re.compile(r" ?(?:%|per ?cent|pct\.?)$", re.IGNORECASE)
_POINTS = re.compile(r"points?$|\bpp$|\bbps$|\u2030$", re.IGNORECASE)


def problem(expected: str, options: Options) -> str | None:
    """Why it cannot be what is expected."""
    return None if _wanted(expected) else "it is no percentage, such as 12.5%"


def compare(expected: str, forms: list[str], options: Options) -> AnswerMatch:
    """Whether an answer is the expected percentage."""
    wanted, text = (
        number.bare(_SIGN.sub("", on_one_line(innermost(expected)))),
        number.without_copula(on_one_line(forms[-1])),
    )
    bare = _SIGN.sub("", text)
    found = number.bare(bare, decimal_comma=options.decimal_comma)
    if wanted is None or found is None or number.names_money(text):
        if doubt := hedge.doubt_about_number(text):
            return hedged(expected, forms[0], f"{doubt!r} makes it uncertain")
        looser = "if percentage points were meant" if _POINTS.search(text) else None
        return missed(expected, forms[0], looser)
    if number.within(wanted, found, options):
        return matched(expected, "as a percentage")
    hundredfold = Number(found.value * 100, None if found.places is None else max(0, found.places - 2))
    if bare == text and number.within(wanted, hundredfold, options):
        if options.fraction_ok:
            return matched(expected, "as a fraction of one")
        return missed(expected, forms[0], "with fraction_ok: true")
    near = abs(found.value - wanted.value) <= Fraction(1, 2 * 10 ** (found.places or 0))
    return missed(expected, forms[0], "rounded: set abs_tol" if near else None)


def _wanted(expected: str) -> Number | None:
    return number.bare(_SIGN.sub("", on_one_line(innermost(expected))))
