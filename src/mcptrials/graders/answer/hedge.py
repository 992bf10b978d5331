"""Words and signs that take an answer back, widen it or set another beside it."""

import re

_SIGNS = re.compile(r"[<>~\u2248\u2264\u2265\u00b1\u2260\u2243\u2245?|]|\.\.\.|\u2026")
_WORDS = re.compile(
    r"\b(?:about|almost|also|among|and|another|apiece|approx|approximately|around|assume|assuming|at|below|above|between|but|ca|"
    r"circa|could|couple|cannot|each|either|else|estimate|estimated|even|except|excluding|fewer|few|greater|guess|half|if|"
    r"ish|kilo|mega|giga|milli|least|less|likely|max|maximum|may|maybe|might|minimum|minus|mln|mn|mio|more|most|near|nearly|negative|neither|never|no|none|"
    r"nor|not|of|or|otherwise|out|over|perhaps|per|plus|possibly|presumably|probably|roughly|see|several|should|some|squared|cubed|"
    r"than|too|think|times|to|under|unless|unsure|uncertain|unknown|up|versus|vs|without|wrong|incorrect|"
    r"one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|thirteen|fourteen|fifteen|sixteen|seventeen|"
    r"eighteen|nineteen|twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety|dozens?|scores?|gross|hundreds?|tenths?|hundredths?|thousandths?|"
    r"quarters?|thirds?|zero)\b|n't\b",
    re.IGNORECASE,
)
_DOUBT = re.compile(
    r"\b(?:about|approx|approximately|around|between|but|cannot|either|except|guess|likely|maybe|might|neither|never|"
    r"no|nor|not|or|perhaps|possibly|probably|think|unsure|without)\b|n't\b|[?~\u2248/|]",
    re.IGNORECASE,
)


def doubt_about_number(text: str) -> str | None:
    """What beside a number makes it another number, or none."""
    found = _SIGNS.search(text) or _WORDS.search(text)
    return found[0] if found else None


def doubt(text: str) -> str | None:
    """What beside a value takes it back."""
    found = _DOUBT.search(text)
    return found[0] if found else None
