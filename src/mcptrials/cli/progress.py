"""Live progress of a run: counts, tokens and the time left on a terminal, one line per trial elsewhere."""

from collections import Counter
from typing import Self

import click
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

from mcptrials.cli.screen import SCRIPTED_LABEL, one_line, safe
from mcptrials.counting import counted
from mcptrials.record import Record
from mcptrials.runner.options import Plan
from mcptrials.trial import Trial

_MARKS = {"passed": ("✓", "green"), "failed": ("✗", "red"), "invalid": ("?", "yellow"), "pending": ("…", "cyan")}


class Progress:
    """A `Listener` that writes to standard error."""

    def __init__(self, console: Console, *, ask: bool) -> None:
        self._console, self._ask = console, ask
        self._counts: Counter[str] = Counter()
        self._tokens: int | None = 0
        self._bar: Bar | None = None
        self._download: Bar | None = None
        self._told: tuple[str, int] | None = None
        self._done, self._total = 0, 0
        self.warnings: list[str] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self._end_download()
        if self._bar:
            self._bar.stop()

    def notice(self, text: str) -> None:
        self._console.print(safe(text, "dim"))

    def warn(self, text: str) -> None:
        self.warnings.append(text)
        self._console.print(safe(f"warning: {text}", "yellow"))

    def progressed(self, what: str, done: int, total: int) -> None:
        """A bar on a terminal; elsewhere a line per tenth."""
        if not self._console.is_terminal:
            tenth = 10 * done // max(total, 1)
            if (what, tenth) != self._told:
                self._told = (what, tenth)
                self._console.print(safe(f"{what}: {done / 1e6:,.0f} of {total / 1e6:,.0f} MB", "dim"))
            return
        if self._download is None:
            columns = (
                TextColumn("{task.description}", markup=False),
                BarColumn(),
                DownloadColumn(),
                TimeRemainingColumn(),
            )
            self._download = Bar(*columns, console=self._console, transient=True)
            self._download.add_task(one_line(what), total=total)
            self._download.start()
        self._download.update(self._download.task_ids[0], description=one_line(what), completed=done, total=total)

    def _end_download(self) -> None:
        if self._download:
            self._download.stop()
            self._download = None

    def confirm(self, plan: Plan) -> bool:
        self._end_download()
        self._print_plan(plan)
        self._total = len(plan.owed)
        asks = self._ask and not plan.free
        return not asks or click.confirm(f"Run {counted(len(plan.owed), 'trial')}?", err=True)

    def _print_plan(self, plan: Plan) -> None:
        if plan.scripted:
            self._console.print(safe(SCRIPTED_LABEL, "bold yellow"))
        sizes = (("task", plan.suite.tasks), ("arm", plan.arms), ("trial", plan.trials))
        counts = ", ".join(counted(len(items), noun) for noun, items in sizes)
        rest = f", {len(plan.owed)} still owed" if len(plan.owed) != len(plan.trials) else ""
        self._console.print(safe(f"run {plan.run_id} · {counts}{rest} · {plan.concurrency} at a time", "bold"))
        for arm in plan.arms:
            self._console.print(safe(f"  arm {arm.label}"))
        limits = plan.limits
        self._console.print(
            safe(
                f"  limits per trial: {counted(limits.turns, 'turn')}, {counted(limits.tool_calls, 'call')}, "
                f"{limits.tokens} tokens, {limits.trial_seconds:g} s",
                "dim",
            )
        )

    def _make_bar(self) -> Bar:
        bar = Bar(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            console=self._console,
            transient=True,
        )
        bar.add_task(self._line(), total=self._total)
        return bar

    def _line(self) -> str:
        counts = self._counts
        unscored = counts["invalid"] + counts["pending"]
        tokens = "" if self._tokens is None else f" · {self._tokens:,} tokens"
        return f"{counts['passed']} passed, {counts['failed']} failed, {unscored} not scored{tokens}"

    def started(self, trial: Trial) -> None:
        """The bar begins with the first trial, when nothing else writes to the terminal."""
        self._end_download()
        if self._console.is_terminal and self._bar is None:
            self._bar = self._make_bar()
            self._bar.start()

    def recorded(self, record: Record) -> None:
        self._done += 1
        self._counts[record.verdict] += 1
        used = (record.input_tokens, record.output_tokens) if record.reply_hash is not None else (0, 0)
        known = None not in used and self._tokens is not None
        self._tokens = (self._tokens or 0) + sum(part or 0 for part in used) if known else None
        if self._bar:
            self._bar.update(self._bar.task_ids[0], description=self._line(), completed=self._done)
            if self._done == self._total:
                self._bar.stop()
        self._print_trial(record)

    def _print_trial(self, record: Record) -> None:
        mark, style = _MARKS[record.verdict]
        spent = f"{record.duration_ms / 1000:.1f} s" if record.duration_ms is not None else ""
        cause = f" ({record.cause})" if record.cause else ""
        text = f"{mark} {record.task_id} {record.trial}{cause}  {counted(record.tool_calls, 'call')}  {spent}"
        error = f"  {one_line(record.error)}" if record.error else ""
        console = self._bar.console if self._bar else self._console
        position = "" if self._bar else f"[{self._done}/{self._total}] "
        console.print(safe(f"{position}{text}{error}", style))

    def stopping(self, in_flight: int, *, cancelled: bool) -> None:
        if cancelled:
            text = f"cancelling {counted(in_flight, 'trial')} in flight, owed again"
        else:
            text = f"no new trial begins; {in_flight} in flight are finished. Ctrl-C again cancels them"
        console = self._bar.console if self._bar else self._console
        console.print(safe(text, "yellow"))
