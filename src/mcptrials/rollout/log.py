"""TrialLog: the growing transcript of one trial, in memory for its graders and on disk for ever."""

import time
import traceback
from pathlib import Path

from mcptrials.errors import TrialError
from mcptrials.events import Event, Failure, LimitReached, ModelReply, ModelRequest, StateRead, ToolsListed
from mcptrials.protocols import WireLog
from mcptrials.rollout.bench import TrialFiles
from mcptrials.rollout.clock import TrialClock
from mcptrials.servers.spoken import Overheard
from mcptrials.transcript import Transcript
from mcptrials.trial import StateValue


class TrialLog:
    """Events, clock and files of one trial."""

    def __init__(self, files: TrialFiles) -> None:
        self.clock = TrialClock()
        self.transcript = Transcript()
        self.started_at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        self.host_ended_ms: float | None = None
        self.waited_ms_at_end = 0.0
        self.overheard: dict[str, Overheard] = {}
        """What was said to each server so far."""
        self.trial_dir: str | None = None
        """Where the trial's directory is kept, if it is."""
        self._files = files

    @property
    def path(self) -> str:
        """The transcript's file, relative to the run folder."""
        return self._files.transcript

    def emit(self, event: Event) -> None:
        self.transcript.append(event)
        self._files.write(event)

    def wire(self, server: str) -> WireLog:
        self.overheard[server] = Overheard(self._files.wire(server))
        return self.overheard[server]

    def kept(self, folder: Path | None) -> None:
        self.trial_dir = str(folder) if folder else None

    def failed(self, failure: TrialError) -> None:
        """Notes the fault that ended the trial; a bug of ours with its traceback."""
        trace = "".join(traceback.format_exception(failure)) if failure.cause == "bug" else None
        self.emit(
            Failure(
                at_ms=self.clock.now_ms(),
                blame=failure.blame,
                cause=failure.cause,
                message=failure.message,
                traceback=trace,
            )
        )

    def host_ended(self, time_limit_s: float | None) -> None:
        """The final answer is there, or a limit (the time limit, if given); what follows is our own work."""
        if time_limit_s is not None:
            self.emit(LimitReached(at_ms=self.clock.now_ms(), limit="time", value=time_limit_s))
        self.host_ended_ms = self.clock.now_ms()
        self.waited_ms_at_end = self.clock.waited_s * 1000

    @property
    def tool_time_s(self) -> float:
        """Time in tool calls, also in one that the end of the trial cut off, and in lists that were taken again."""
        cut_off_ms = self.host_ended_ms or 0.0
        times_ms = [made.answer.ms if made.answer else cut_off_ms - made.call.at_ms for made in self.transcript.calls]
        times_ms += [event.ms for event in self.transcript.events if isinstance(event, ToolsListed)]
        return sum(times_ms) / 1000

    @property
    def model_time_s(self) -> float | None:
        """Time in which the model's replies were awaited, also one that the end of the trial cut off.

        None where the host does not tell of its requests.
        """
        if not any(isinstance(event, ModelRequest) for event in self.transcript.events):
            return None
        total_ms, asked_ms = 0.0, None
        for event in self.transcript.events:
            if isinstance(event, ModelRequest):
                asked_ms = event.at_ms
            elif isinstance(event, ModelReply) and asked_ms is not None:
                total_ms, asked_ms = total_ms + event.at_ms - asked_ms, None
        if asked_ms is not None:
            total_ms += (self.host_ended_ms or asked_ms) - asked_ms
        return total_ms / 1000

    def state_read(self, query: str, value: StateValue, began_ms: float) -> None:
        ms = self.clock.now_ms() - began_ms
        self.emit(StateRead(at_ms=began_ms, ms=ms, query=query, value=value.value, error=value.error))

    def close(self) -> None:
        self._files.close()
