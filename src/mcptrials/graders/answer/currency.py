"""Currencies: their codes, signs and names."""

from collections.abc import Mapping

NAMES: Mapping[str, str] = {
    "$": "$", "dollar": "$", "dollars": "$", "us$": "USD", "usd$": "USD", "us dollars": "USD", "us dollar": "USD",
    "u.s. dollars": "USD", "\u20ac": "EUR", "euro": "EUR", "euros": "EUR", "\u00a3": "GBP", "pound": "GBP",
    "pounds": "GBP", "pounds sterling": "GBP", "\u00a5": "\u00a5", "yen": "JPY", "yuan": "CNY", "renminbi": "CNY",
    "rmb": "CNY", "\u20b9": "INR", "rupees": "INR", "rupee": "INR", "ca$": "CAD", "c$": "CAD", "cad$": "CAD",
    "canadian dollars": "CAD", "a$": "AUD", "au$": "AUD", "australian dollars": "AUD", "nz$": "NZD", "hk$": "HKD",
    "s$": "SGD", "\u20a9": "KRW", "won": "KRW", "\u20bd": "RUB", "rubles": "RUB", "swiss francs": "CHF",
    "francs": "CHF", "fr.": "CHF", "r$": "BRL", "reais": "BRL", "\u20ba": "TRY", "z\u0142": "PLN", "\u20aa": "ILS",
    "\u20b4": "UAH", "\u20bf": "BTC",
}  # fmt: skip
CODES = frozenset(  # those of ISO 4217 that are met
    """
    AED ARS AUD BDT BGN BHD BRL BTC CAD CHF CLP CNY COP CZK DKK EGP EUR GBP GHS HKD HUF IDR ILS INR IRR ISK JOD JPY
    KES KRW KWD KZT LKR MAD MXN MYR NGN NOK NZD OMR PEN PHP PKR PLN QAR RON RSD RUB SAR SEK SGD THB TND TRY TWD UAH
    USD UYU VND ZAR
    """.split()  # noqa: SIM905 - a table
)
DOLLARS = frozenset({"USD", "CAD", "AUD", "NZD", "HKD", "SGD", "TWD", "MXN", "ARS", "CLP", "COP"})
"""Those whose sign is `$`."""
COMMON: Mapping[str, str] = {"$": "USD", "\u00a5": "JPY"}
"""What a sign alone means where nothing else is said."""


def find_currency(name: str) -> str | None:
    """The code of a sign, name or code; of a sign that several share, the sign."""
    if name.upper() in CODES:
        return name.upper()
    return NAMES.get(name.casefold().strip())


def differ(wanted: str | None, found: str | None) -> bool:
    """Whether both name a currency, and not the same one."""
    if wanted is None or found is None:
        return False
    return COMMON.get(wanted, wanted) != COMMON.get(found, found)


def agree(names: list[str | None]) -> bool:
    """Whether sign and code may stand together, as in `$1,250 CAD`."""
    first, last = (names or [None])[0] or "", (names or [None])[-1] or ""
    return (
        first == last
        or (first, last) in (("\u00a5", "JPY"), ("\u00a5", "CNY"))
        or (first == "$" and last in DOLLARS)
        or (last == "$" and first in DOLLARS)
    )
