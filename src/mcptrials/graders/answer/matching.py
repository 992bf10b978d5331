"""Answers against expected values: several of them, their kinds, and what is never an answer."""

import json
from collections.abc import Sequence
from typing import Any

from mcptrials.answer import extract
from mcptrials.errors import UsageError
from mcptrials.graders.answer import text
from mcptrials.graders.answer.kinds import RULES, infer
from mcptrials.graders.answer.options import KINDS, NAMES, Kind, Options, given_names, misfits, unfit, value_problem
from mcptrials.graders.answer.verdict import AnswerMatch, shown
from mcptrials.graders.answer.wording import MAX_CHARS, normalise, wordings
from mcptrials.source import nearest

_TAGGED = "@tag"
EMPTY = "it is empty: an empty answer never matches"
_TOLD = ("hedged", "near_miss", "format", "no_answer", "wrong")
"""Of several alternatives that do not match, the most telling reason first."""


def match_answer(
    expected: str | Sequence[str],
    answer: str | None,
    kind: str | None = None,
    *,
    aliases: Sequence[str] = (),
    **options: Any,
) -> AnswerMatch:
    """Whether `answer` is the expected value, or one of several.

    Whatever only presents a value does not count, and whatever makes it another one does: see `docs/answers.md`.

    Args:
        kind: one of `KINDS`; None takes the one that each expected value seems to be. `KIND@tag` reads the last
            `<answer>` of a whole message.
        aliases: texts that are right as well.
        options: those of `Options`.

    Raises:
        UsageError: an option or kind that does not exist, or an option that is not for the kind.
    """
    kind, tagged = (kind.removesuffix(_TAGGED), kind.endswith(_TAGGED)) if kind else (None, False)
    known = next((each for each in KINDS if each == kind), None)
    if kind and not known:
        raise UsageError(f"there is no kind {kind!r}", hint=nearest(kind, KINDS))
    chosen = _options(options) if options else Options()
    values = [expected] if isinstance(expected, str) else list(expected)
    if options:
        _check_fit(chosen, {known or infer(value, chosen) for value in alternatives(values, known)})
    if tagged:
        answer, framing = extract(answer)
        if framing not in ("tagged", "hedged"):
            return AnswerMatch(False, "format", "there is no <answer>...</answer> with an answer in it")
    try:
        return compare_answer((values, aliases), answer, known, chosen)
    except TimeoutError:
        return AnswerMatch(False, "wrong", "the pattern takes too long on this answer")


def compare_answer(
    right: tuple[Sequence[str], Sequence[str]], answer: str | None, kind: Kind | None, options: Options
) -> AnswerMatch:
    """The same of options that are known to fit, with expected values and their aliases.

    Raises:
        TimeoutError: a pattern takes too long on this answer.
    """
    answer = answer or ""
    if len(answer) > MAX_CHARS:
        return AnswerMatch(False, "wrong", f"the answer has {len(answer)} characters, more than {MAX_CHARS}")
    forms = wordings(answer)
    if (longest := max(map(len, forms))) > MAX_CHARS:  # one character may stand for eighteen
        return AnswerMatch(False, "wrong", f"the answer has {longest} characters, more than {MAX_CHARS}")
    if not forms[-1]:
        return AnswerMatch(False, "no_answer", "the answer is empty")
    found = []
    for value in alternatives(right[0], kind):
        found.append(RULES[kind or infer(value, options)].compare(value, forms, options))
        if found[-1].passed:
            return found[-1]
    for alias in right[1]:
        if text.compare(alias, forms, options).passed:
            return AnswerMatch(True, "match", f"equals the alias {shown(alias)}")
        if kind and (match := RULES[kind].compare(alias, forms, options)).passed:
            return match
    return min(
        found, key=lambda each: _TOLD.index(each.reason), default=AnswerMatch(False, "wrong", "nothing is expected")
    )


def expected_problem(value: str, kind: Kind, options: Options) -> str | None:
    """Why an expected value can match nothing of its kind."""
    if not (value.strip() if kind == "regex" else normalise(value)):
        return EMPTY
    return RULES[kind].problem(value, options)


def alternatives(values: Sequence[str], kind: Kind | None) -> list[str]:
    """Each expected value; several items of a set or list are one value, unless they are lists themselves."""
    if kind in ("set", "list") and len(values) > 1 and not any(value.lstrip().startswith("[") for value in values):
        return [json.dumps(list(values))]
    return list(values)


def _options(given: dict[str, Any]) -> Options:
    for name, value in given.items():
        if name not in NAMES:
            raise UsageError(f"there is no option {name!r}", hint=nearest(name, (*NAMES, "aliases")))
        if problem := value_problem(name, value):
            raise UsageError(problem)
    return Options(**given)


def _check_fit(options: Options, kinds: set[Kind]) -> None:
    for name in misfits(given_names(options), kinds):
        raise UsageError(unfit(name, kinds))
