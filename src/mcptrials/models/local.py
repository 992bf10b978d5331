"""Language models that run on this machine, by name or from a file of the user's; no key, no account."""

import importlib.util
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import anyio

from mcptrials.errors import ProviderError, UsageError
from mcptrials.events import CallAsked, ToolShown
from mcptrials.models.lenient import find_calls
from mcptrials.models.local_child import INSTALL, Child, Served, start_child
from mcptrials.models.openai_chat import OpenAIChat
from mcptrials.models.registry import Weights, weights_named
from mcptrials.models.weights import Progress, find_or_fetch, ignore_progress, user_file
from mcptrials.protocols import Assistant, Endpoint, Message, Reply
from mcptrials.trial import TrialKey

DEFAULT_CTX = 8192
DEFAULT_SETTINGS: Mapping[str, Any] = {"temperature": 0.7, "top_p": 0.95}
REQUEST_SECONDS = 300
MAX_STARTS = 2
MAX_THREADS = 8
FENCE_TEMPLATE = Path(__file__).with_name("fence.jinja")
"""Calls as fenced JSON: what the Qwen coder models write, and what the runtime then reads as calls."""
END_OF_FENCE = "```\n"
"""Where a reply under that template ends. Once the runtime has read a call, its grammar lets nothing follow but more
calls; a model that has ended its call, and would go on with an answer, is driven to invent calls up to its limit."""


@dataclass(frozen=True, slots=True)
class LocalName:
    """A model's name taken apart: `NAME` or `/path/x.gguf`, then `?template=FILE&ctx=N`."""

    model: Weights | Path
    template: Path | None
    ctx: int

    @property
    def effective_name(self) -> str:
        return self.model.stem if isinstance(self.model, Path) else self.model.effective_name


def parse_name(name: str) -> LocalName:
    """The name of a local model, taken apart and checked.

    Raises:
        UsageError: no such model, file or option.
    """
    model, _, query = name.partition("?")
    options = dict(parse_qsl(query, keep_blank_values=True))
    if unknown := options.keys() - {"template", "ctx"}:
        raise UsageError(f"unknown option {min(unknown)!r} of {name!r}", hint="use template=FILE or ctx=N")
    ctx = options.get("ctx", str(DEFAULT_CTX))
    if not (ctx.isascii() and ctx.isdigit() and int(ctx) > 0):
        raise UsageError(f"ctx of {name!r} is no number of tokens", hint=f"use ctx=N, for example ctx={DEFAULT_CTX}")
    template = _path(options["template"]) if "template" in options else None
    if template and not _is_file(template):
        raise UsageError("no such chat template", where=str(template), hint="give the path of a Jinja file")
    if "/" in model or model.endswith(".gguf"):
        return LocalName(user_file(_path(model)), template, int(ctx))
    return LocalName(weights_named(model), template or FENCE_TEMPLATE, int(ctx))


def _path(text: str) -> Path:
    """A `~` of nobody is a file's name like any other."""
    try:
        return Path(text).expanduser()
    except RuntimeError:
        return Path(text)


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:
        return False


class LocalModel:
    """A model in a child process on this machine, started at the first request; one request at a time.

    Besides what chat completions take, `reproducible: true` among a request's settings makes equal requests give equal
    replies, at the cost of reading the whole prompt anew each turn. By default the temperature is 0.7, the seed is the
    trial's, and a registered model calls one tool at a time.

    Args:
        name: a registered name or the path of a GGUF file, optionally with `?template=FILE&ctx=N`.
        progress: told about the fetching of weights.
    """

    scripted = False

    def __init__(self, name: str, *, progress: Progress = ignore_progress) -> None:
        self._name, self._progress = parse_name(name), progress
        self._lock = anyio.Lock()
        self._child: Child | None = None
        self._chat: OpenAIChat | None = None
        self._starts = 0

    @property
    def endpoint(self) -> Endpoint | None:
        """Where the model listens, once it is started."""
        return self._chat.endpoint if self._chat else None

    async def start(self) -> None:
        """Fetch the weights if need be, and load them.

        Raises:
            UsageError: the runtime is missing, or the model can be had nowhere or not be loaded.
        """
        async with self._lock:
            await self._running_chat()

    async def request(
        self, messages: Sequence[Message], tools: Sequence[ToolShown], settings: Mapping[str, Any], trial: TrialKey
    ) -> Reply:
        async with self._lock:
            chat = await self._running_chat()
            try:
                reply = await chat.request(messages, tools, self._settings(settings, tools, trial), trial)
            except ProviderError as failure:
                if failure.cause == "connection" and self._child and await self._child.died():
                    raise self._crashed(self._child) from failure
                raise
        return read_leniently(reply, tools, messages)

    async def aclose(self) -> None:
        async with self._lock:
            await self._close_child()

    def _settings(self, settings: Mapping[str, Any], tools: Sequence[ToolShown], trial: TrialKey) -> dict[str, Any]:
        merged = {**DEFAULT_SETTINGS, "seed": trial.seed}
        if tools and self._name.template == FENCE_TEMPLATE:
            merged["stop"] = [END_OF_FENCE]
        merged |= settings
        if merged.pop("reproducible", False):
            merged["cache_prompt"] = False  # a warm cache changes the order of sums, and so the text
        return merged

    async def _running_chat(self) -> OpenAIChat:
        if self._child and not self._child.alive:
            if self._starts >= MAX_STARTS:
                raise self._crashed(self._child)
            await self._close_child()
        if self._chat is None:
            self._child = await start_child(await self._served())
            self._starts += 1
            name, url, key = self._name.effective_name, self._child.url, self._child.api_key
            self._chat = OpenAIChat(name, base_url=url, api_key=key, timeout_s=REQUEST_SECONDS)
        return self._chat

    async def _served(self) -> Served:
        if importlib.util.find_spec("xllamacpp") is None:
            raise UsageError("the runtime of local models is not installed", hint=INSTALL)
        model = self._name.model
        path = model if isinstance(model, Path) else await find_or_fetch(model, self._progress)
        threads = min(os.cpu_count() or 1, MAX_THREADS)
        return Served(path, self._name.effective_name, self._name.ctx, threads, self._name.template)

    async def _close_child(self) -> None:
        if self._chat:
            await self._chat.aclose()
        if self._child:
            await self._child.aclose()
        self._chat = self._child = None

    def _crashed(self, child: Child) -> ProviderError:
        again = self._starts < MAX_STARTS
        return ProviderError("connection", f"the local model died: {child.last_words()}", retryable=again)


def read_leniently(reply: Reply, tools: Sequence[ToolShown], messages: Sequence[Message]) -> Reply:
    """The reply, with the calls that the model wrote as text where it has no real ones."""
    if reply.calls or not reply.text:
        return reply
    found = find_calls(reply.text, {tool.shown_name for tool in tools})
    turn = sum(isinstance(message, Assistant) for message in messages)
    calls = tuple(
        CallAsked(id=f"text_{turn}_{index}", name=name, raw_arguments=arguments)
        for index, (name, arguments) in enumerate(found)
    )
    return replace(reply, calls=calls, stop="calls", call_source="lenient") if calls else reply
