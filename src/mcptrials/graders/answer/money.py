"""Kind `money`: an amount, with its currency wherever one is named."""

import re
from dataclasses import dataclass

from mcptrials.graders.answer import hedge, number
from mcptrials.graders.answer.number import Number
from mcptrials.graders.answer.options import Options
from mcptrials.graders.answer.verdict import AnswerMatch, hedged, matched, missed
from mcptrials.graders.answer.wording import spaced

_NAMES = {
    "$": "$", "dollar": "$", "dollars": "$", "us$": "USD", "usd$": "USD", "us dollars": "USD", "us dollar": "USD",
    "u.s. dollars": "USD", "\u20ac": "EUR", "euro": "EUR", "euros": "EUR", "\u00a3": "GBP", "pound": "GBP",
    "pounds": "GBP", "pounds sterling": "GBP", "\u00a5": "\u00a5", "yen": "JPY", "yuan": "CNY", "renminbi": "CNY",
    "rmb": "CNY", "\u20b9": "INR", "rupees": "INR", "rupee": "INR", "ca$": "CAD", "c$": "CAD", "cad$": "CAD",
    "canadian dollars": "CAD", "a$": "AUD", "au$": "AUD", "australian dollars": "AUD", "nz$": "NZD", "hk$": "HKD",
    "s$": "SGD", "\u20a9": "KRW", "won": "KRW", "\u20bd": "RUB", "rubles": "RUB", "swiss francs": "CHF", "francs": "CHF",
    "fr.": "CHF", "r$": "BRL", "reais": "BRL", "\u20ba": "TRY", "z\u0142": "PLN", "\u20aa": "ILS", "\u20b4": "UAH", "\u20bf": "BTC",
}  # fmt: skip
_CODES = frozenset(
    "AED ARS AUD BDT BGN BHD BRL BTC CAD CHF CLP CNY COP CZK DKK EGP ETH EUR GBP GHS HKD HUF IDR ILS INR IRR ISK JOD JPY "
    "KES KRW KWD KZT LKR MAD MXN MYR NGN NOK NZD OMR PEN PHP PKR PLN QAR RON RSD RUB SAR SEK SGD THB TND TRY TWD UAH "
    "USD UYU VND ZAR".split()
)
_DOLLARS = frozenset({"USD", "CAD", "AUD", "NZD", "HKD", "SGD", "TWD", "MXN", "ARS", "CLP", "COP"})
_AMBIGUOUS = {"$": "USD", "\u00a5": "JPY"}
"""What a sign alone means where nothing else is said."""
_BEFORE = re.compile(r"(?P<sign>[-+]? ?)(?P<name>[A-Za-z]{0,4}[^\w\s.,+()-]|[A-Za-z]{3}|[Ff]r\.) ?(?=[-+.0-9])")
_AFTER = re.compile(r"(?<=[0-9A-Za-z.]) ?(?P<name>[^\W\d_][\w. ]{0,20}|[^\w\s.,+()-])$")
_SCALE = re.compile(r"(?:[kKMBT]|bn|Bn|hundred|thousand|million|billion|trillion)\b ?")


@dataclass(frozen=True, slots=True)
class _Sum:
    amount: Number
    currency: str | None


def problem(expected: str, options: Options) -> str | None:
    """Why it cannot be what is expected."""
    return None if _read(expected, decimal_comma=False) else "it is no amount of money, such as $1,250.00"


def compare(expected: str, forms: list[str], options: Options) -> AnswerMatch:
    """Whether an answer is the expected amount, in no other currency."""
    wanted, text = _read(expected, decimal_comma=False), number.without_copula(spaced(forms[-1]))
    found = _read(text, decimal_comma=options.decimal_comma)
    if wanted is None or found is None:
        if doubt := hedge.doubt_about_number(text):
            return hedged(expected, forms[0], f"{doubt!r} makes it uncertain")
        return missed(expected, forms[0])
    if not number.within(wanted.amount, found.amount, options):
        return missed(expected, forms[0])
    if _another(wanted.currency, found.currency):
        return missed(expected, forms[0], "in another currency")
    return matched(expected, "as an amount")


def _another(wanted: str | None, found: str | None) -> bool:
    """Whether both name a currency, and not the same one; a bare `$` or yen sign is the common one."""
    if wanted is None or found is None:
        return False
    return _AMBIGUOUS.get(wanted, wanted) != _AMBIGUOUS.get(found, found)


def _read(text: str, *, decimal_comma: bool) -> _Sum | None:
    text, names = spaced(text), []
    if found := _BEFORE.match(text):
        names.append(_currency(found["name"]))
        text = found["sign"].strip() + text[found.end() :]
    if found := _AFTER.search(text):
        scale = _SCALE.match(found["name"])
        name = found["name"][scale.end() :] if scale else found["name"]
        if name:
            names.append(_currency(name))
            text = text[: len(text) - len(name)].rstrip()
    amount = number.bare(text, decimal_comma=decimal_comma)
    if amount is None or None in names or not _agree(names):
        return None
    return _Sum(amount, max(names, key=lambda name: len(name or ""), default=None))


def _agree(names: list[str | None]) -> bool:
    """Whether sign and code may stand together, as in `$1,250 CAD`."""
    first, last = (names or [None])[0] or "", (names or [None])[-1] or ""
    return (
        first == last
        or (first, last) in (("\u00a5", "JPY"), ("\u00a5", "CNY"))
        or (first == "$" and last in _DOLLARS)
        or (last == "$" and first in _DOLLARS)
    )


def _currency(name: str) -> str | None:
    if name.upper() in _CODES:
        return name.upper()
    return _NAMES.get(name.casefold().strip())
