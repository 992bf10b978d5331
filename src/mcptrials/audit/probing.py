"""Nonsense that a server should answer sanely: a tool that it does not have, arguments that do not fit."""

from collections.abc import Mapping, Sequence
from typing import Any

from mcptrials.audit.line import Level, Line
from mcptrials.errors import ServerError
from mcptrials.presentation import RawTool, ToolFilter, read_only
from mcptrials.protocols import CallResult, ServerSession

PROBE_S = 10.0
NO_SUCH_TOOL = "mcptrials_no_such_tool"
_WRONG: Mapping[str, Any] = {"string": {"not": "a text"}, "object": "no object", "array": "no list"}
"""A value of another type, by the type that is asked for; for the others an object is wrong."""


async def probe_lines(label: str, session: ServerSession, filters: Sequence[ToolFilter], call_s: float) -> list[Line]:
    """Calls that change nothing: only tools that say they read, and that a task shows."""
    timeout_s = min(PROBE_S, call_s)
    lines = [await _probe(label, session, "a call of a tool it does not have", (NO_SUCH_TOOL, {}), timeout_s)]
    tool = next((each for each in session.tools if _harmless(each, filters) and _required(each)), None)
    if tool is None:
        what = "wrong arguments were not tried: no tool that says it only reads takes a required one"
        return [*lines, Line("servers", "ok", label, what)]
    wrong = {name: _WRONG.get(str(kind), {}) for name, kind in _required(tool).items()}
    for what, arguments in (("missing arguments", {}), ("arguments of a wrong type", wrong)):
        if lines[-1].level != "fail":
            said = f"a call of {tool['name']!r:.80} with {what}"
            lines.append(await _probe(label, session, said, (tool["name"], arguments), timeout_s))
    return lines


def _harmless(tool: RawTool, filters: Sequence[ToolFilter]) -> bool:
    return read_only(tool) and all(each.shows(tool) for each in filters)


def _required(tool: RawTool) -> dict[str, Any]:
    """The required arguments with the types they are declared to have."""
    schema = tool["inputSchema"]
    required, properties = schema.get("required"), schema.get("properties")
    if not isinstance(required, list) or not isinstance(properties, Mapping):
        return {}
    known = {name: properties[name] for name in required if isinstance(name, str) and name in properties}
    return {name: each.get("type") for name, each in known.items() if isinstance(each, Mapping) and "type" in each}


async def _probe(
    label: str, session: ServerSession, said: str, call: tuple[str, dict[str, Any]], timeout_s: float
) -> Line:
    try:
        answer = await session.call(*call, timeout_s)
    except ServerError as exc:
        return Line("servers", "fail", label, f"{said} ended it: {exc.message}", "answer with isError: true")
    level, what, fix = _judged(answer, timeout_s)
    return Line("servers", level, label, f"{said} {what}", fix, {"status": answer.status, "ms": answer.ms})


def _judged(answer: CallResult, timeout_s: float) -> tuple[Level, str, str | None]:
    """Spec, server/tools, error handling: what a model can mend is a result with `isError`."""
    match answer.status:
        case "tool_error":
            return "ok", "is answered as a tool error", None
        case "protocol_error":
            return "ok", "is answered by a protocol error, which some hosts do not show to the model", None
        case "ok":
            return "warn", "is answered as if it were right", "check arguments by the schema, and say what is wrong"
        case "input_required":
            return "warn", "is answered by a question of its own", "check the arguments before asking"
        case "timeout":
            return "fail", f"is not answered within {timeout_s:g} s", "answer with isError: true"
        case "transport_lost":
            return "fail", "ends the server", "answer with isError: true"
    return "warn", "is answered by what is no valid result", "answer with isError: true"
