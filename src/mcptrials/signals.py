"""Signals that ask a process to end."""

import signal


def ending_signals() -> tuple[signal.Signals, ...]:
    """TERM, and that of a terminal that closes, unless this process is to outlive it (nohup)."""
    hang_up: signal.Signals | None = getattr(signal, "SIGHUP", None)  # not on Windows
    if hang_up is None or signal.getsignal(hang_up) is signal.SIG_IGN:
        return (signal.SIGTERM,)
    return (signal.SIGTERM, hang_up)
