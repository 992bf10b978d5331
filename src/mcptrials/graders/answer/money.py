"""Kind `money`: an amount, with its currency wherever one is named."""

import re
from dataclasses import dataclass

from mcptrials.graders.answer import hedge, number
from mcptrials.graders.answer.currency import agree, differ, find_currency
from mcptrials.graders.answer.number import Number
from mcptrials.graders.answer.options import Options
from mcptrials.graders.answer.verdict import AnswerMatch, hedged, matched, missed
from mcptrials.graders.answer.wording import innermost, on_one_line

_BEFORE = re.compile(r"(?P<sign>[-+]? ?)(?P<name>[A-Za-z]{0,4}[^\w\s.,+()-]|[A-Za-z]{3}|[Ff]r\.) ?(?=[-+.0-9])")
_AFTER = re.compile(r"(?<=[0-9A-Za-z.]) ?(?P<name>[^\W\d_][\w. ]{0,20}|[^\w\s.,+()-])$")
_SCALE = re.compile(r"(?:[kKMBT]|bn|Bn|hundred|thousand|million|billion|trillion)\b ?")


@dataclass(frozen=True, slots=True)
class _Sum:
    amount: Number
    currency: str | None


def problem(expected: str, options: Options) -> str | None:
    """Why it cannot be what is expected."""
    return None if _read(innermost(expected), decimal_comma=False) else "it is no amount of money, such as $1,250.00"


def compare(expected: str, forms: list[str], options: Options) -> AnswerMatch:
    """Whether an answer is the expected amount, in no other currency."""
    wanted, text = _read(innermost(expected), decimal_comma=False), number.without_copula(on_one_line(forms[-1]))
    found = _read(text, decimal_comma=options.decimal_comma)
    if wanted is None or found is None:
        if doubt := hedge.doubt_about_number(text):
            return hedged(expected, forms[0], f"{doubt!r} makes it uncertain")
        return missed(expected, forms[0])
    if not number.within(wanted.amount, found.amount, options):
        return missed(expected, forms[0])
    if differ(wanted.currency, found.currency):
        return missed(expected, forms[0], "in another currency")
    return matched(expected, "as an amount")


def _read(text: str, *, decimal_comma: bool) -> _Sum | None:
    text, names = on_one_line(text), []
    if found := _BEFORE.match(text):
        names.append(find_currency(found["name"]))
        text = found["sign"].strip() + text[found.end() :]
    if found := _AFTER.search(text):
        scale = _SCALE.match(found["name"])
        name = found["name"][scale.end() :] if scale else found["name"]
        if name:
            names.append(find_currency(name))
            text = text[: len(text) - len(name)].rstrip()
    amount = number.bare(text, decimal_comma=decimal_comma)
    if amount is None or None in names or not agree(names):
        return None
    return _Sum(amount, max(names, key=lambda name: len(name or ""), default=None))
