"""The user's own commands: run in the project's folder, bounded in time and output, with no process left behind."""

import os
from collections.abc import Iterable

from mcptrials import errand, excerpt
from mcptrials.environment.remains import MAX_BYTES, ReadError
from mcptrials.protocols import Place


async def run_command(argv: Iterable[str], place: Place, timeout_s: float) -> tuple[int, str, str]:
    """(exit code, stdout, stderr) of a user's command.

    Raises:
        ReadError: it cannot be started, takes too long or prints too much.
    """
    argv = tuple(argv)
    environment = os.environ | {"MCPTRIALS_TRIAL_DIR": str(place.trial_dir), "PYTHONUTF8": "1"}
    try:
        done = await errand.run(errand.Errand(argv, place.project_dir, environment, timeout_s, MAX_BYTES))
    except TimeoutError:
        raise ReadError(f"{argv[0]!r} did not end within {timeout_s:g} s") from None
    except (OSError, ValueError) as exc:
        raise ReadError(f"cannot start {argv[0]!r}: {getattr(exc, 'strerror', None) or exc}") from exc
    if done.too_much:
        raise ReadError(f"{argv[0]!r} printed more than {MAX_BYTES >> 20} MiB")
    return done.code, done.output.decode("utf-8", "replace"), errand.tail_text(done.errors)


def last_line(text: str) -> str:
    """The last words of a failed command."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return excerpt.beginning(lines[-1], 300) if lines else "it printed nothing on stderr"
