"""Child program that serves one model file on 127.0.0.1 in the dialect of OpenAI.

It reads its API key as the first line of standard input, prints one line `READY URL SECONDS`, and ends when its input
is closed: so it never outlives its parent, however that ends. A process of its own, because the runtime is native code
that can crash, takes gigabytes, and must find its variables set before it is loaded.
"""

import argparse
import os
import sys
import threading
import time
from pathlib import Path
from typing import TextIO

SPIN_BRIEFLY = {"GOMP_SPINCOUNT": "10000"}
NO_RUNTIME = 3
"""Exit code: the runtime is not installed, or cannot be loaded."""


def main() -> None:
    """Serve until standard input is closed."""
    options = _options()
    ready = _claim_stdout()
    api_key = sys.stdin.readline().strip()
    if not api_key:
        sys.exit("no API key on standard input")
    parent = threading.Thread(target=_end_with_parent, daemon=True)
    parent.start()
    began = time.perf_counter()
    server = _serve(options, api_key)
    ready.write(f"READY {server.listening_address} {time.perf_counter() - began:.2f}\n")
    ready.flush()
    parent.join()


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="mcptrials.models.local_server")
    parser.add_argument("model")
    parser.add_argument("--alias", required=True)
    parser.add_argument("--ctx", type=int, required=True)
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--template")
    return parser.parse_args()


def _claim_stdout() -> TextIO:
    """Our standard output for the READY line alone; what the native code prints goes to standard error."""
    ours = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    return ours


def _end_with_parent() -> None:
    sys.stdin.read()
    os._exit(0)


def _serve(options: argparse.Namespace, api_key: str) -> "xllamacpp.Server":  # type: ignore[name-defined] # noqa: F821
    # Threads that spin for milliseconds make generation many times slower as soon as another process wants a core;
    # threads that never spin cost a third of the speed when none does.
    os.environ |= SPIN_BRIEFLY
    try:
        import xllamacpp  # noqa: PLC0415 - the variables are read when the library is loaded
    except ImportError as exc:
        sys.stderr.write(f"{type(exc).__name__}: {exc}\n")
        sys.exit(NO_RUNTIME)

    params = xllamacpp.CommonParams()
    params.model.path = options.model
    params.model_alias = {options.alias}
    params.hostnames, params.port, params.api_keys = ["127.0.0.1"], 0, [api_key]
    params.n_ctx, params.n_parallel, params.n_gpu_layers = options.ctx, 1, 0
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = options.threads
    params.use_jinja = True
    if options.template:
        params.chat_template = Path(options.template).read_text(encoding="utf-8")
    # The defaults are those of a server for the whole network: a web page, any origin, 8 GB of cache, downloads.
    params.ui = params.endpoint_slots = False
    params.cors_origins = ""
    params.cache_ram_mib, params.offline = 0, True
    params.fit_params = False  # it may shrink the context
    params.verbosity = 1
    return xllamacpp.Server(params)


if __name__ == "__main__":
    main()
