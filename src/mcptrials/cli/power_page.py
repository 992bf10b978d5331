"""The screen of `mcptrials power`: what can be found, what differences need, what it uses and assumes."""

from collections.abc import Iterator, Mapping
from typing import Any

from rich.console import Console
from rich.table import Table

from mcptrials.cli.screen import SCRIPTED_LABEL, safe
from mcptrials.cli.tables import new_table
from mcptrials.counting import counted
from mcptrials.stats.chance import MOST_TASKS, MOST_TRIALS

Row = Mapping[str, Any]


def print_power(console: Console, found: Row) -> None:
    """The whole screen."""
    if found["source"]["scripted"]:
        console.print(safe(SCRIPTED_LABEL, "bold yellow"))
    console.print(safe(_design_line(found), "bold"))
    if found["never"]:
        console.print(safe(f"NEVER: {found['never']}", "bold red"))
    else:
        console.print(safe(_detectable_line(found), "bold"))
    console.print(_effects(found))
    for line in (*_allocation_lines(found["allocation"]), *_use_lines(found)):
        console.print(safe(line))
    console.print(safe("assumed, or measured where it says so:", "dim"))
    for line in (*found["assumptions"]["lines"], _method_line(found)):
        console.print(safe(f"  {line}", "dim"))
    for warning in found["warnings"]:
        console.print(safe(f"! {warning}", "yellow"))


def _design_line(found: Row) -> str:
    design, source = found["design"], found["source"]
    groups = f" in {counted(design['n_groups'], 'group')}" if design["n_groups"] < design["n_tasks"] else ""
    tasks = f"{counted(design['n_tasks'], 'task')}{groups} x {counted(design['trials_per_task'], 'trial')}"
    return f"{source['kind']} {source['name']} · {tasks} x 2 arms: {counted(design['n_trials'], 'trial')}"


def _share(chance: Row) -> str:
    """A chance with the simulation's own error."""
    error = "" if chance["se"] is None else f" +- {100 * chance['se']:.1f}"
    return f"{100 * chance['power']:.0f} %{error}"


def _detectable_line(found: Row) -> str:
    wanted = f"{100 * found['assumptions']['power']:g} % power"
    least = found["detectable"]
    if least["difference"] is None:
        return f"no difference is found with {wanted}"
    return (
        f"for tasks like these it detects a true difference of {100 * least['difference']:.0f} points with {wanted} "
        f"({_share(least)}, {least['method']})"
    )


def _effects(found: Row) -> Table:
    wanted = f"{100 * found['assumptions']['power']:g} %"
    columns = ["true difference", "found with these", f"tasks for {wanted}", f"or trials a task for {wanted}"]
    table = new_table("What a difference needs", columns)
    for row in found["effects"]:
        tasks, trials = row["tasks_needed"], row["trials_needed"]
        table.add_row(
            f"{100 * row['difference']:g} points",
            _share(row),
            f"> {MOST_TASKS:,}" if tasks is None else f"{tasks:,}",
            f"none up to {MOST_TRIALS}" if trials is None else f"{trials:,}",
        )
    return table


def _allocation_lines(found: Row | None) -> Iterator[str]:
    if found is None:
        return
    same, cheapest = found["same_cost"], found["for_effect"]
    yield f"cost as planned: {found['cost']:,.6g}; best spent with {counted(found['trials_per_task'], 'trial')} a task"
    detects = "can never decide" if same["detectable"] is None else f"detect {100 * same['detectable']:.0f} points"
    yield f"  for as much: {counted(same['n_tasks'], 'task')} so tried {detects}, for {same['cost']:,.6g}"
    if cheapest:
        tasks = counted(cheapest["n_tasks"], "task")
        yield f"  for the difference asked for: {tasks} so tried, for {cheapest['cost']:,.6g}"


def _use_lines(found: Row) -> Iterator[str]:
    use = found["use"]
    parts = []
    if use["requests"] is not None:
        parts.append(f"about {use['requests']:,.0f} model requests")
    elif use["requests_max"] is not None:
        parts.append(f"at most {use['requests_max']:,.0f} model requests, by the limits")
    if use["input_tokens"] is not None and use["output_tokens"] is not None:
        parts.append(f"about {use['input_tokens']:,.0f} tokens in, {use['output_tokens']:,.0f} out")
    parts.append("money unknown: no price is known" if use["cost_usd"] is None else f"about ${use['cost_usd']:,.2f}")
    yield f"{counted(found['design']['n_trials'], 'trial')} would use: {' · '.join(parts)}"


def _method_line(found: Row) -> str:
    assumed = found["assumptions"]
    return (
        f"the test: {assumed['test']}, two-sided at {100 * assumed['alpha']:g} %; {assumed['runs']:,} simulated "
        f"comparisons each, seed {assumed['seed']}; +- is their standard error"
    )
