"""inspect-ai on the same endpoint and server: the same trials, counted in the same way.

python peer.py BASE_URL TASKS EPOCHS CONCURRENCY    # writes ./used.json
"""

import json
import os
import resource
import sys
import tempfile
from pathlib import Path

base_url, tasks, epochs, concurrency = sys.argv[1], *map(int, sys.argv[2:])
os.environ |= {"FAKE_API_KEY": "none", "FAKE_BASE_URL": base_url, "INSPECT_DISPLAY": "none"}

from inspect_ai import Epochs, Task  # noqa: E402 - its settings are read when it is imported
from inspect_ai import eval as evaluate  # noqa: E402
from inspect_ai.agent import react  # noqa: E402
from inspect_ai.dataset import MemoryDataset, Sample  # noqa: E402
from inspect_ai.scorer import includes  # noqa: E402
from inspect_ai.tool import mcp_server_stdio  # noqa: E402

server = Path(__file__).with_name("mcp_server_min.py")
samples = [Sample(id=number, input=f"Task {number}: add 2 and 3.", target="5") for number in range(tasks)]
task = Task(
    dataset=MemoryDataset(samples),
    solver=react(tools=[mcp_server_stdio(name="bench", command=sys.executable, args=[str(server)])], submit=False),
    scorer=includes(),
    epochs=Epochs(epochs),
)
with tempfile.TemporaryDirectory() as logs:
    [log] = evaluate(
        task,
        model="openai-api/fake/fake",
        max_samples=concurrency,
        max_connections=concurrency,
        max_subprocesses=concurrency,
        log_dir=logs,
        log_level="warning",
        display="none",
    )
assert log.status == "success", log.status
own, servers = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
used = {
    "cpu_s": own.ru_utime + own.ru_stime,
    "servers_cpu_s": servers.ru_utime + servers.ru_stime,
    "rss_mb": int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]) / 1024,
}
Path("used.json").write_text(json.dumps(used))
