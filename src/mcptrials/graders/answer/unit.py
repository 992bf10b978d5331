"""Units of measurement: their spellings, and how many of the first unit of their dimension each is."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction

_PREFIXES = {
    "n": ("nano", "1e-9"), "u": ("micro", "1e-6"), "\u03bc": ("micro", "1e-6"), "m": ("milli", "1e-3"),
    "c": ("centi", "1e-2"), "k": ("kilo", "1e3"), "M": ("mega", "1e6"), "G": ("giga", "1e9"), "T": ("tera", "1e12"),
}  # fmt: skip
_PREFIXED = {
    "m": ("length", "1", "meter metre"), "g": ("mass", "1", "gram gramme"), "s": ("time", "1", "second"),
    "L": ("volume", "1", "liter litre"), "l": ("volume", "1", ""), "W": ("power", "1", "watt"),
    "V": ("voltage", "1", "volt"), "A": ("current", "1", "amp ampere"), "Hz": ("frequency", "1", "hertz"),
    "J": ("energy", "1", "joule"), "Wh": ("energy", "3600", "watt-hour"), "Pa": ("pressure", "1", "pascal"),
    "N": ("force", "1", "newton"), "cal": ("energy", "4.184", "calorie"), "\u03a9": ("resistance", "1", "ohm"),
}  # fmt: skip
_DATA = {
    "k": ("kilo", 10**3), "K": ("kilo", 10**3), "M": ("mega", 10**6), "G": ("giga", 10**9), "T": ("tera", 10**12),
    "P": ("peta", 10**15), "Ki": ("kibi", 2**10), "Mi": ("mebi", 2**20), "Gi": ("gibi", 2**30), "Ti": ("tebi", 2**40),
    "Pi": ("pebi", 2**50),
}  # fmt: skip
# International yard and pound (1959): an inch is 2.54 cm, a pound 453.59237 g. Gallons are those of the US.
_SINGLE = """
length    0.0254        in inch inches
length    0.3048        ft foot feet
length    0.9144        yd yard
length    1609.344      mi mile
length    1852          nmi nautical-mile
mass      1000000       t tonne metric-ton
mass      453.59237     lb lbs pound
mass      28.349523125  oz ounce
time      1             sec secs
time      60            min mins minute
time      3600          h hr hrs hour
time      86400         d day
time      604800        wk week
months    1             mo month
months    12            yr year
volume    3.785411784   gal gallon
volume    1000          m3 m^3 m\u00b3 cubic-meter cubic-metre
volume    0.001         cm3 cm^3 cm\u00b3 cc
area      1             m2 m^2 m\u00b2 sqm square-meter square-metre
area      1000000       km2 km^2 km\u00b2 square-kilometer square-kilometre
area      10000         ha hectare
area      0.09290304    ft2 ft^2 ft\u00b2 sqft square-foot square-feet
area      4046.8564224  ac acre
speed     3600          m/s mps
speed     1000          km/h kph kmh
speed     1609.344      mph mi/h
speed     1852          kn knot
pressure  100000        bar
pressure  100           mbar millibar
pressure  6894.757293168361  psi
frequency 1/60          rpm
angle     1             deg \u00b0 degree
"""
_TEMPERATURES = {
    "K": ("1", "0", "K kelvin kelvins"),
    "C": ("1", "273.15", "\u00b0C \u2103 C celsius degC centigrade"),
    "F": ("5/9", "229835/900", "\u00b0F \u2109 F fahrenheit degF"),
}


@dataclass(frozen=True, slots=True)
class Unit:
    """`value * factor + offset` of the first unit of its dimension."""

    dimension: str
    factor: Fraction
    offset: Fraction = Fraction(0)


def find_unit(name: str) -> Unit | None:
    """The unit of a spelling: symbols as they are, words in any case, one or many."""
    name = " ".join(name.split())
    if name in _SYMBOLS:
        return _SYMBOLS[name]
    if len(name) >= _MIN_WORD and name.endswith("s") and name[:-1] in _SYMBOLS:
        return _SYMBOLS[name[:-1]]
    word = name.casefold().replace(" ", "-")
    word = word.replace("degrees-", "").replace("degree-", "").replace("deg-", "")
    return _WORDS.get(word) or _WORDS.get(word.removesuffix("s"))


def _units() -> Iterator[tuple[str, Unit]]:
    for symbol, (dimension, factor, words) in _PREFIXED.items():
        for prefix, (name, power) in {"": ("", "1"), **_PREFIXES}.items():
            unit = Unit(dimension, Fraction(factor) * Fraction(power))
            yield from ((f"{prefix}{symbol}", unit), *((name + word, unit) for word in words.split()))
    for prefix, (name, size) in {"": ("", 1), **_DATA}.items():
        for symbol, word, bits in (("b", "bit", 1), ("B", "byte", 8)):
            unit = Unit("data", Fraction(size * bits))
            yield from ((f"{prefix}{symbol}", unit), (f"{prefix}{word}", unit), (f"{name}{word}", unit))
    for dimension, factor, *spellings in map(str.split, filter(None, _SINGLE.splitlines())):
        yield from ((each, Unit(dimension, Fraction(factor))) for each in spellings)
    for factor, offset, said in _TEMPERATURES.values():
        unit = Unit("temperature", Fraction(factor), Fraction(offset))
        yield from ((each, unit) for each in said.split())


_SYMBOLS: Mapping[str, Unit] = dict(_units())
_MIN_WORD = 3
_WORDS: Mapping[str, Unit] = {
    name: unit for name, unit in _SYMBOLS.items() if len(name) >= _MIN_WORD and name.islower() and name.isascii()
}
