"""Asking back: what helps a reference that fails where its server asks its client for something."""

from mcptrials.events import ServerAsked
from mcptrials.runner.rehearsal import Played

_KEYS = {
    "elicitation/create": ("elicitation", "'elicitation: accept-defaults', or 'elicitation: scripted' with 'answers'"),
    "sampling/createMessage": ("sampling", "'sampling: scripted' with 'answers'"),
    "roots/list": ("roots", "'roots: trial_dir'"),
}
"""By what is asked: the key of a server, and what it may say."""
_MODERN = "2026-07-28"


def asking_hint(played: Played) -> str | None:
    """What to write into the project file; None where nothing was asked, or it was answered."""
    started = played.transcript.servers
    modern = {each.server for each in started if each.protocol_version and each.protocol_version >= _MODERN}
    for made in played.transcript.calls:
        said = made.answer.shown if made.answer and made.answer.status != "ok" else ""
        method = next((each for each in _KEYS if each in said), None)
        if method and made.call.server in modern:
            # Spec 2026-07-28, basic/patterns/mrtr: a server sends no requests; what it asks stands in a result.
            return (
                f"servers.{made.call.server} asks by a request, which clients take up to protocol 2025-11-25 only:"
                f" write 'era: legacy' under it, with {_KEYS[method][1]}; or let its tool return the question"
            )
    for event in played.transcript.events:
        if isinstance(event, ServerAsked) and event.policy in ("decline", "none") and event.method in _KEYS:
            key, value = _KEYS[event.method]
            return f"servers.{event.server} asks its client, and '{key}' says {event.policy}: write {value} under it"
    return None
