"""Failures, each attributed to one side.

McptrialsError
├── UsageError          a file, flag or setting is wrong; exit code 2, before any spend
├── IncompleteError     the work stopped before its end; exit code 3
└── TrialError          one trial failed to happen, or ended by a fault; carries blame and cause
    ├── ProviderError   the model's provider (adds HTTP status and Retry-After)
    ├── ServerError     the server under test
    ├── HostError       the agent harness
    ├── GraderError     a grader could not decide
    └── HarnessError    this product or the machine it runs on
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

Blame = Literal["none", "provider", "harness", "server", "host", "agent", "grader"]


class McptrialsError(Exception):
    """Anything this product raises on purpose: what is wrong, where it stands, and what to do next."""

    def __init__(self, what: str, *, where: str | None = None, hint: str | None = None) -> None:
        super().__init__(what)
        self.what, self.where, self.hint = what, where, hint

    def __str__(self) -> str:
        text = f"{self.where}: {self.what}" if self.where else self.what
        return f"{text}; {self.hint}" if self.hint else text


class UsageError(McptrialsError):
    """A file, flag or setting is wrong; found before any spend."""


class IncompleteError(McptrialsError):
    """The work stopped before its end; what was recorded is kept."""


class TrialError(McptrialsError):
    """A trial did not happen, or ended by a fault."""

    blame: Blame = "harness"

    def __init__(self, cause: str, message: str) -> None:
        super().__init__(message)
        self.cause, self.message = cause, message


class ProviderError(TrialError):
    """The provider refused or failed one request.

    `cause` is rate_limit, auth, quota, http, connection or timeout; `retryable` says whether the same request may
    succeed later.
    """

    blame: Blame = "provider"

    def __init__(
        self,
        cause: str,
        message: str,
        *,
        status: int | None = None,
        retry_after_s: float | None = None,
        retryable: bool = False,
    ) -> None:
        super().__init__(cause, message)
        self.status, self.retry_after_s, self.retryable = status, retry_after_s, retryable


class ServerError(TrialError):
    """The server under test: server_start, crash, contract_violation or context_overflow."""

    blame: Blame = "server"


class HostError(TrialError):
    """The host did not start or never listed the tools."""

    blame: Blame = "host"


class GraderError(TrialError):
    """A grader could not decide."""

    blame: Blame = "grader"


class HarnessError(TrialError):
    """This product, or what it runs on: reset, io, bug, auth or rate_limit."""

    blame: Blame = "harness"


@contextmanager
def boundary(error: type[TrialError], cause: str, what: str) -> Iterator[None]:
    """Attribute what fails inside to one side; errors that are attributed already pass through."""
    try:
        yield
    except McptrialsError:
        raise
    except Exception as exc:
        raise error(cause, f"{what}: {describe(exc)}") from exc


def describe(exc: BaseException) -> str:
    """One line for an exception; of a group, its first leaf."""
    while isinstance(exc, BaseExceptionGroup):
        exc = exc.exceptions[0]
    text = " ".join(str(exc).split())
    return f"{type(exc).__name__}: {text}" if text else type(exc).__name__
