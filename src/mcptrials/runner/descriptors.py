"""How many files a run may have open, raised in time to what its trials need."""

from contextlib import suppress

try:
    import resource
except ImportError:  # not on Windows, which has no such limit
    resource = None  # type: ignore[assignment]

PER_TRIAL = 16
"""Pipes of a server, its logs, a model's connection, and some for a second server and for readers."""
OWN = 100


def provide_descriptors(trials: int) -> str | None:
    """Raises the soft limit if so many trials at a time need it; a warning when that is not allowed.

    Not further than needed: programs that close every descriptor they could have get slow by a high limit.
    """
    if resource is None:
        return None
    needed = OWN + PER_TRIAL * trials
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft in (resource.RLIM_INFINITY, -1) or soft >= needed:
        return None
    allowed = needed if hard in (resource.RLIM_INFINITY, -1) else min(needed, hard)
    with suppress(OSError, ValueError):  # some systems allow less than they say
        resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
    if (allowed := resource.getrlimit(resource.RLIMIT_NOFILE)[0]) >= needed:
        return None
    return f"{trials} trials at a time may need {needed} open files, {allowed} are allowed: lower 'concurrency'"
