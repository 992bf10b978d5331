"""Runs mcptrials and reports what it used by itself, without its child processes.

python used.py FILE run --quiet ...
"""

import json
import resource
import sys
from pathlib import Path

from mcptrials.cli import main


def peak_mb() -> float:
    """The peak of resident memory; where /proc tells it, without what a forking parent had."""
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return int(status.split("VmHWM:")[1].split()[0]) / 1024


try:
    main(sys.argv[1:])
finally:
    own, servers = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    used = {
        "cpu_s": own.ru_utime + own.ru_stime,
        "servers_cpu_s": servers.ru_utime + servers.ru_stime,
        "rss_mb": peak_mb(),
    }
    Path("used.json").write_text(json.dumps(used))
