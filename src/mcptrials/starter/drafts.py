"""Drafts of tasks: what a person completes, about tools that the server has."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mcptrials.presentation import RawTool
from mcptrials.starter.leanings import leanings
from mcptrials.starter.yaml_lines import comment, scalar, value

TODO = "TODO"
_MAX_ARGUMENTS = 12
_MAX_VALUE = 80
_FILLERS: Mapping[str, Any] = {"integer": 1, "number": 1, "boolean": True, "array": [], "object": {}, "null": None}
_READ_PROMPT = "what a user would ask so that one call of {} answers it. Reply with the ... only."
_WRITE_PROMPT = "what a user would ask so that something is looked up first and then changed by {}."
_TWO_PROMPT = "what a user would ask so that two calls are needed, the second of them of {}."
_NONE_PROMPT = 'A note says "Keep 4471 open until Friday." Which number does the note name? Reply with the number only.'


@dataclass(frozen=True)
class Draft:
    """One draft: its id and its lines."""

    id: str
    lines: Sequence[str]


def drafts_of(server: str, slug: str, tools: Sequence[RawTool], *, named: bool) -> list[Draft]:
    """Three drafts: one call, two calls or a write, no call; about different tools if there are as many.

    Args:
        named: whether tools are written with their server, since there are several.
    """
    writer = _Writer(server, slug, {str(tool["name"]): tool for tool in tools}, named=named)
    kinds = leanings(tools)
    order = [*kinds.reading, *kinds.writing]
    first = order[:1]
    others = [name for name in order if name not in first]
    second = [name for name in others if name in kinds.writing][:1] or others[:1] or first
    third = [name for name in others if name not in second][:1] or second
    writes = bool(set(second) & set(kinds.writing)) and second != first
    return [writer.read(first), writer.two_calls(first, second, writes=writes), writer.no_call(third)]


def drafts_text(drafts: Iterable[Draft]) -> str:
    lines = ["# Drafts: loaded and checked, but run only when they are completed and 'draft: true' is removed."]
    for draft in drafts:
        lines += [*draft.lines, ""]
    return "\n".join(lines)


def slug_of(name: str, taken: Iterable[str]) -> str:
    """A server's name as the beginning of task ids."""
    slug = re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-._")[:60] or "server"
    used = {each.casefold() for each in taken}
    numbered = (f"{slug}-{number}" for number in range(2, len(used) + 3))
    return next(each for each in (slug, *numbered) if each.casefold() not in used)


class _Writer:
    """Writes the drafts of one server."""

    def __init__(self, server: str, slug: str, tools: Mapping[str, RawTool], *, named: bool) -> None:
        self._server, self._slug, self._tools, self._named = server, slug, tools, named

    def read(self, names: Sequence[str]) -> Draft:
        prompt = f"{TODO}: {_READ_PROMPT.format(self._shown(names))}"
        return self._draft("read", self._about(names), prompt, self._answered(names))

    def two_calls(self, first: Sequence[str], second: Sequence[str], *, writes: bool) -> Draft:
        pattern = _WRITE_PROMPT if writes else _TWO_PROMPT
        check = (
            [
                "  # What was changed is decided by the state behind the server: declare a reader under",
                "  # environment.readers in the project file, then put this among the graders:",
                "  #   - {type: state_check, query: name of item 17, expected: ...}",
            ]
            if writes
            else []
        )
        names = list(dict.fromkeys([*first, *second]))
        prompt = f"{TODO}: {pattern.format(self._shown(second))} Reply with the ... only."
        return self._draft(
            "write" if writes else "two-calls", self._about(second), prompt, [*self._answered(names), *check]
        )

    def no_call(self, names: Sequence[str]) -> Draft:
        about = [
            comment(f"No call is needed: the answer stands in the prompt. Bring it close to {self._shown(names)}.")
        ]
        rest = ["  expects: abstain", "  graders:", "    - {type: exact_answer, expected: 4471, kind: id}"]
        return self._draft("no-call", about, _NONE_PROMPT, rest)

    def _draft(self, kind: str, about: Sequence[str], prompt: str, rest: Sequence[str]) -> Draft:
        name = f"{self._slug}-{kind}"
        head = [f"- id: {scalar(name)}", "  draft: true", *(f"  {line}" for line in about)]
        return Draft(name, [*head, f"  prompt: {scalar(prompt)}", *rest])

    def _answered(self, names: Sequence[str]) -> list[str]:
        """Graders and reference of a task that tools answer."""
        lines = ["  graders:", f'    - {{type: exact_answer, expected: "{TODO}"}}']
        if not names:
            return lines
        calls = [f"      - {value(self._call(name))}" for name in names]
        expected = value([f"{self._server}/{name}" if self._named else name for name in names])
        return [*lines, "  reference:", f'    answer: "{TODO}"', "    calls:", *calls, f"  expected_tools: {expected}"]

    def _call(self, name: str) -> dict[str, Any]:
        server = {"server": self._server} if self._named else {}
        return {**server, "tool": name, "args": _arguments(self._tools[name])}

    def _about(self, names: Sequence[str]) -> list[str]:
        described = [(name, self._tools[name].get("description")) for name in names]
        return [comment(f"{name[:60]}: {text[:1000]}") for name, text in described if isinstance(text, str)]

    @staticmethod
    def _shown(names: Sequence[str]) -> str:
        return f"'{names[0][:60]}'" if names else "a tool"


def _arguments(tool: RawTool) -> dict[str, Any]:
    """The required arguments, with values of the right kind to be replaced."""
    schema = tool.get("inputSchema")
    properties = schema.get("properties") if isinstance(schema, Mapping) else None
    required = schema.get("required") if isinstance(schema, Mapping) else None
    names = required if isinstance(required, list) else []
    properties = properties if isinstance(properties, Mapping) else {}
    kept = [name for name in names if isinstance(name, str) and len(name) <= _MAX_VALUE][:_MAX_ARGUMENTS]
    return {name: _filler(properties.get(name)) for name in kept}


def _filler(schema: Any) -> Any:
    if not isinstance(schema, Mapping):
        return TODO
    choices = schema.get("enum")
    if isinstance(choices, list) and choices and isinstance(choices[0], str) and len(choices[0]) <= _MAX_VALUE:
        return choices[0]
    kind = schema.get("type")
    return _FILLERS.get(kind, TODO) if isinstance(kind, str) else TODO
