"""Balance: what a suite lacks as a whole, and tasks that are nearly the same."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import islice
from math import ceil

from mcptrials.audit.line import Doubt, Line
from mcptrials.task import Task

MIN_TASKS = 5
"""Fewer are a beginning, of which nothing is said as a whole."""
_RARE = 0.2
_WEAK = 0.3
"""Of Anthropic's "Writing effective tools for agents": strong tasks need several calls."""
_ALIKE = 0.8
"""Of the words of two prompts, this share is in both (Jaccard 1901)."""
_FEW = 3
"""Words that say too little to be compared."""
MAX_COMPARED = 200
"""Prompts that one is compared with, those first with which it shares its rarest words."""
_COMMON = 3
"""Prompts that have a sentence in common which is then no one's own."""
_SENTENCE = re.compile(r"(?<=[.?!])\s+|\n+")


def balance_lines(tasks: Sequence[Task]) -> list[Line]:
    """What is wanting, as warnings; the numbers in any case."""
    if len(tasks) < MIN_TASKS:
        return []
    count: Counter[str] = Counter(task.expects for task in tasks)
    lines = [_classes(count, len(tasks))]
    calls = [len(task.reference.calls) for task in tasks if task.reference and task.expects == "act"]
    return [*lines, _calls(calls)] if len(calls) >= MIN_TASKS else lines


def _classes(count: Mapping[str, int], total: int) -> Line:
    told = ", ".join(f"{each} {number}" for each, number in count.items())
    acting = count.get("act", 0)
    facts = {"expects": dict(count)}
    if acting / total > 1 - _RARE or acting / total < _RARE:
        rare = "in which nothing is to be done or found" if acting / total > _RARE else "in which the server is needed"
        what = f"few tasks {rare}: {told}; a model that always does the same looks good"
        fix = (
            "add tasks with expects: abstain, not_found or refuse" if acting / total > _RARE else "add tasks to act on"
        )
        return Line("tasks", "warn", "classes", what, fix, facts)
    return Line("tasks", "ok", "classes", told, None, facts)


def _calls(calls: Sequence[int]) -> Line:
    single = sum(number <= 1 for number in calls)
    facts = {"references": len(calls), "single_call": single, "calls_max": max(calls)}
    said = f"{single} of {len(calls)} references make one call or none, the longest {max(calls)}"
    if single > _WEAK * len(calls):
        what = f"weak tasks: {said}; tasks of one call say little about tools"
        return Line("tasks", "warn", "calls", what, "add tasks that need several calls, one after the other", facts)
    return Line("tasks", "ok", "calls", said, None, facts)


def twins(tasks: Sequence[Task]) -> dict[str, Doubt]:
    """Tasks that ask nearly what one before them asks, by id; those of one group are meant to be alike."""
    if len(tasks) < MIN_TASKS:
        return {}
    words = _own_words(tasks)
    first: dict[str, list[int]] = {}
    rank = Counter(word for own in words for word in own)
    found: dict[str, Doubt] = {}
    for number, (task, own) in enumerate(zip(tasks, words, strict=True)):
        if len(own) < _FEW:
            continue
        rarest = sorted(own, key=lambda word: (rank[word], word))
        # Two sets that are this alike share one of so many of their rarest words: prefix filtering (Chaudhuri 2006).
        prefix = rarest[: len(own) - ceil(_ALIKE * len(own)) + 1]
        sharing = islice((other for word in prefix for other in first.get(word, ())), MAX_COMPARED)
        near = (other for other in sharing if _alike(own, words[other]))
        other = next((each for each in near if _comparable(task, tasks[each])), None)
        if other is not None:
            found[task.id] = _twin(task, tasks[other])
            continue  # so that many of one kind are compared with the first alone
        for word in prefix:
            first.setdefault(word, []).append(number)
    return found


def _twin(task: Task, other: Task) -> Doubt:
    apart = task.split != other.split
    what = f"near-duplicate: its prompt is nearly that of task {other.id}"
    if apart:
        return Doubt(
            f"{what}, of the other split: held-out tasks then measure what was tuned", "keep both in one split"
        )
    return Doubt(f"{what}; the two count as two, and tell as much as one", "give both one group, or drop one")


def _comparable(task: Task, other: Task) -> bool:
    is_grouped = task.group is not None and task.group == other.group and task.split == other.split
    return not is_grouped and task.expects == other.expects and task.environment == other.environment


def _alike(one: frozenset[str], other: frozenset[str]) -> bool:
    both = len(one & other)
    return both >= _ALIKE * (len(one) + len(other) - both)


def _own_words(tasks: Sequence[Task]) -> list[frozenset[str]]:
    """Of each prompt its words, without sentences that many prompts have."""
    split = [[each.strip().casefold() for each in _SENTENCE.split(task.prompt) if each.strip()] for task in tasks]
    common = Counter(sentence for sentences in split for sentence in set(sentences))
    return [
        frozenset(word for each in own for word in re.findall(r"[\w-]+", each))
        for own in ([each for each in sentences if common[each] < _COMMON] or sentences for sentences in split)
    ]
