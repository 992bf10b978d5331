"""What a server asks of its client - elicitation, sampling, roots - and the answers that its policy gives."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from mcptrials import excerpt
from mcptrials.frozen import Frozen, Items, UserData
from mcptrials.protocols import Asked, SessionHooks

ElicitationPolicy = Literal["decline", "cancel", "accept-defaults", "scripted"]
SamplingPolicy = Literal["decline", "scripted"]
RootsPolicy = Literal["none", "trial_dir"]

ELICITATION, SAMPLING, ROOTS = "elicitation/create", "sampling/createMessage", "roots/list"
MAX_ANSWERS = 100
"""In one session, which is that of one trial; a server that asks more often is refused."""
METHOD_NOT_FOUND = -32601
REFUSED = -1
"""What the specification gives as the code of a sampling request that a person turned down (client/sampling)."""


class Answer(UserData):
    """What is answered to a request whose message holds a text."""

    to: str = ""
    """A part of the message that it answers; without it, any message."""
    action: Literal["accept", "decline", "cancel"] = "accept"
    """What the user does with a form or an address."""
    content: dict[str, Any] = {}
    """The fields of the form; the others keep their defaults."""
    text: str | None = Field(default=None, min_length=1)
    """The model's message, for a sampling request."""


class ClientPolicy(Frozen):
    """How a session answers. A capability is declared only where a policy was chosen: it may change the tool list."""

    elicitation: ElicitationPolicy | None = None
    sampling: SamplingPolicy | None = None
    roots: RootsPolicy = "none"
    answers: Items[Answer] = ()

    @property
    def capabilities(self) -> dict[str, Any]:
        """As `initialize` and modern requests declare them."""
        declared: dict[str, Any] = {}
        if self.elicitation is not None:
            declared["elicitation"] = {"form": {}, "url": {}}
        if self.sampling is not None:
            declared["sampling"] = {}
        if self.roots != "none":
            declared["roots"] = {}
        return declared


@dataclass(frozen=True, slots=True)
class Refusal:
    """A JSON-RPC error in place of an answer."""

    code: int
    message: str


@dataclass(frozen=True, slots=True)
class Client:
    """What a session is to its server besides one that calls tools."""

    policy: ClientPolicy = field(default_factory=ClientPolicy)
    trial_dir: Path | None = None
    """The root that `roots: trial_dir` gives."""
    listens: bool = False
    """Whether it wants to hear that the tool list changed."""


NOBODY = Client()
"""Declares nothing and grants nothing."""
_SHOWN = 100
_CAPABILITY = {ELICITATION: "elicitation", SAMPLING: "sampling", ROOTS: "roots"}


class Asking:
    """Answers the requests of one server in one session, and tells each."""

    def __init__(self, policy: ClientPolicy, hooks: SessionHooks, trial_dir: Path | None = None) -> None:
        self._policy, self._hooks, self._trial_dir = policy, hooks, trial_dir
        self._count = 0
        self.capabilities: Mapping[str, Any] = policy.capabilities

    def takes(self, method: str) -> bool:
        """Whether it is one of the three requests that need a policy."""
        return method in _CAPABILITY

    def answer(self, method: str, params: Any) -> dict[str, Any] | Refusal:
        """The result, or why there is none."""
        self._count += 1
        if self._count > MAX_ANSWERS:
            if self._count == MAX_ANSWERS + 1:
                self._hooks.violation("flood", f"more than {MAX_ANSWERS} requests of its own; the rest is refused")
            return Refusal(REFUSED, f"no more than {MAX_ANSWERS} requests are answered")
        capability = _CAPABILITY[method]
        if capability not in self.capabilities:
            self._hooks.violation("undeclared_capability", f"{method}: the client did not declare {capability!r}")
        answer = self._answered(method, params if isinstance(params, dict) else {})
        told = {"error": {"code": answer.code, "message": answer.message}} if isinstance(answer, Refusal) else answer
        self._hooks.asked(Asked(method, params, self._name(method), told))
        return answer

    def inputs(self, requests: Mapping[str, Any]) -> tuple[dict[str, Any], str | None]:
        """What each request inside a result is answered, and why the call cannot go on, if one is not."""
        answers: dict[str, Any] = {}
        for key, request in requests.items():
            method = request.get("method") if isinstance(request, dict) else None
            if not isinstance(method, str) or not self.takes(method):
                return answers, f"it asked for {excerpt.beginning(repr(method), _SHOWN)}, which no client answers"
            answer = self.answer(method, request.get("params"))
            if isinstance(answer, Refusal):
                return answers, f"{method}: {answer.message}"
            answers[key] = answer
        return answers, None

    def _name(self, method: str) -> str:
        """Which policy answers; `decline` where none was chosen."""
        chosen = {ELICITATION: self._policy.elicitation, SAMPLING: self._policy.sampling, ROOTS: self._policy.roots}
        return chosen[method] or "decline"

    def _answered(self, method: str, params: Mapping[str, Any]) -> dict[str, Any] | Refusal:
        if method == ELICITATION:
            return self._elicited(params)
        if method == SAMPLING:
            return self._sampled(params)
        if self._policy.roots == "none" or self._trial_dir is None:
            return Refusal(METHOD_NOT_FOUND, "Roots not supported")
        return {"roots": [{"uri": self._trial_dir.absolute().as_uri(), "name": "trial"}]}

    def _elicited(self, params: Mapping[str, Any]) -> dict[str, Any]:
        policy = self._name(ELICITATION)
        if policy in ("decline", "cancel"):
            return {"action": policy}
        if policy == "accept-defaults":
            return self._filled(params, {})
        found = self._scripted(params.get("message"), sampling=False)
        if found is None or found.action != "accept":
            return {"action": found.action if found else "decline"}
        return self._filled(params, found.content) if _is_form(params) else {"action": "accept"}

    def _filled(self, params: Mapping[str, Any], content: Mapping[str, Any]) -> dict[str, Any]:
        """A form with the given fields and defaults for the rest; declined where a required field has neither.

        An address is declined: nobody is there to visit it.
        """
        schema = params.get("requestedSchema")
        if not _is_form(params) or not isinstance(schema, dict):
            return {"action": "decline"}
        properties = schema.get("properties")
        fields = properties.items() if isinstance(properties, dict) else ()
        defaults = {name: field["default"] for name, field in fields if isinstance(field, dict) and "default" in field}
        filled, required = defaults | dict(content), schema.get("required")
        missing = isinstance(required, list) and any(name not in filled for name in required if isinstance(name, str))
        return {"action": "decline"} if missing else {"action": "accept", "content": filled}

    def _sampled(self, params: Mapping[str, Any]) -> dict[str, Any] | Refusal:
        found = self._scripted(_said(params.get("messages")), sampling=True)
        if self._policy.sampling != "scripted" or found is None:
            return Refusal(REFUSED, "User rejected sampling request")
        content = {"type": "text", "text": found.text}
        return {"role": "assistant", "content": content, "model": "scripted", "stopReason": "endTurn"}

    def _scripted(self, message: Any, *, sampling: bool) -> Answer | None:
        """The first answer that is written for such a message."""
        text = message if isinstance(message, str) else ""
        fit = (each for each in self._policy.answers if (each.text is not None) == sampling and each.to in text)
        return next(fit, None)


def asks_for_input(result: Any) -> bool:
    """One of the two fields must be there (spec, basic/patterns/mrtr); without them the result is just malformed."""
    if result.get("resultType") != "input_required":
        return False
    requests, state = result.get("inputRequests"), result.get("requestState")
    return (isinstance(requests, dict) and bool(requests)) or (requests in (None, {}) and isinstance(state, str))


def _is_form(params: Mapping[str, Any]) -> bool:
    """Spec, client/elicitation: a request without a mode is for a form."""
    return bool(params.get("mode", "form") == "form")


def _said(messages: Any) -> str:
    """The text of a sampling request's messages, one after the other."""
    if not isinstance(messages, Sequence) or isinstance(messages, str):
        return ""
    blocks = [each.get("content") for each in messages if isinstance(each, Mapping)]
    parts = [part for block in blocks for part in (block if isinstance(block, list) else [block])]
    return "\n".join(str(part["text"]) for part in parts if isinstance(part, Mapping) and "text" in part)
