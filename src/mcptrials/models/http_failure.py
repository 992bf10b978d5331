"""A provider's error answer, read as the failure it is."""

import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from mcptrials import excerpt
from mcptrials.errors import ProviderError, ServerError, TrialError

_OVERFLOW = re.compile(
    r"context[ _](length|window|size|limit)|maximum context|prompt is too long|input is too long|input token count"
    r"|exceeds? the (maximum|max) number of tokens",
    re.IGNORECASE,
)
_OVERFLOW_CODES = frozenset({"context_length_exceeded", "exceed_context_size_error", "request_too_large"})
_RETRYABLE = frozenset({408, 409, 425})
_ERRORS = range(400, 600)
_REDIRECTS = range(300, 400)
_LONGEST_MESSAGE = 500
_STATUS_OF_CODE = {
    "rate_limit_exceeded": 429,
    "rate_limit_error": 429,
    "invalid_prompt": 400,
    "invalid_request_error": 400,
    "context_length_exceeded": 400,
    "authentication_error": 401,
    "permission_error": 403,
    "overloaded_error": 529,
}
"""Of errors that come with status 200; any other is the provider's own trouble."""


def failure(status: int, body: Any, headers: Mapping[str, str]) -> TrialError:
    """What an answer with an error status means.

    Args:
        body: its JSON value, or its text.
        headers: with names in lower case, or that ignore case.
    """
    message, codes = _message_and_codes(body)
    message = _redirected(status, headers) or message
    text = f"HTTP {status}: {message}" if message else f"HTTP {status}"
    if codes & _OVERFLOW_CODES or (status in {400, 413, 422} and _OVERFLOW.search(message)):
        return ServerError("context_overflow", text)
    cause, retryable = _cause(status, codes)
    wait = retry_after_s(headers) if retryable else None
    return ProviderError(cause, text, status=status, retry_after_s=wait, retryable=retryable)


def hidden_failure(value: Any, headers: Mapping[str, str]) -> TrialError | None:
    """The failure in what came with a good status, or None when there is content in it."""
    if not isinstance(value, Mapping) or not value.get("error"):
        return None
    if any(value.get(key) for key in ("choices", "content", "output")) and value.get("status") != "failed":
        return None
    error = value["error"] if isinstance(value["error"], Mapping) else {}
    codes = [error.get(key) for key in ("code", "type")]
    number = next((code for code in codes if isinstance(code, int) and code in _ERRORS), None)
    named = next((_STATUS_OF_CODE[code] for code in codes if isinstance(code, str) and code in _STATUS_OF_CODE), 500)
    return failure(number or named, value, headers)


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """How long the provider asks us to wait: `retry-after-ms`, or `retry-after` in seconds or as a date."""
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    value = headers.get("retry-after")
    seconds = _number(value)
    return seconds if seconds is not None or value is None else _until(value)


def _redirected(status: int, headers: Mapping[str, str]) -> str:
    if status not in _REDIRECTS:
        return ""
    place = _one_line(headers.get("location")) or "nowhere"
    return f"a redirect to {place}, which is not followed with your key; set 'base_url' to it if it is the provider"


def _cause(status: int, codes: set[str]) -> tuple[str, bool]:
    if status == 402 or "insufficient_quota" in codes:  # noqa: PLR2004 - Payment Required
        return "quota", False
    if status == 429:  # noqa: PLR2004 - Too Many Requests
        return "rate_limit", True
    if status in {401, 403}:
        return "auth", False
    return "http", status in _RETRYABLE or status >= 500  # noqa: PLR2004 - server errors, 529 (overloaded) too


def _message_and_codes(body: Any) -> tuple[str, set[str]]:
    """The message and the machine-readable codes; providers agree on neither shape nor names."""
    if isinstance(body, list) and body:
        body = body[0]
    error = body.get("error", body) if isinstance(body, Mapping) else body
    if not isinstance(error, Mapping):
        return _one_line(error), set()
    message = next((error[key] for key in ("message", "detail", "error") if error.get(key)), error)
    return _one_line(message), {str(error[key]) for key in ("code", "type", "status") if error.get(key)}


def _one_line(value: Any) -> str:
    return excerpt.beginning(" ".join(str(value or "").split()), _LONGEST_MESSAGE)


def _number(value: str | None) -> float | None:
    try:
        number = float(value or "")
    except ValueError:
        return None
    return number if math.isfinite(number) and number >= 0 else None


def _until(date: str) -> float | None:
    try:
        then = parsedate_to_datetime(date)
        if then.tzinfo is None:
            then = then.replace(tzinfo=UTC)
        return max(0.0, (then - datetime.now(UTC)).total_seconds())
    except (ValueError, OverflowError):  # no date, or one that no calendar holds
        return None
