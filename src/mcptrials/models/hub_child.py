"""Child program that takes one file from the model hub: `REPO REVISION FILE FOLDER`.

A process of its own, because the hub's library may wait long for names and proxies, and may write to the screen: here
both can be bounded from outside.
"""

import os
import shutil
import signal
import sys
from pathlib import Path

REACH_SECONDS = 8
"""Time to import the library and hear from the hub; then the alarm ends this process."""


def main(repo: str, revision: str, file: str, folder: str) -> None:
    """Put the file into the folder: from the hub's own cache if it is there, else from the network."""
    signal.alarm(REACH_SECONDS)
    import huggingface_hub as hub  # noqa: PLC0415 - the alarm must run before

    cached = hub.try_to_load_from_cache(repo, file, revision=revision)
    if isinstance(cached, str):
        signal.alarm(0)
        shutil.copyfile(cached, Path(folder, file))
        return
    hub.get_hf_file_metadata(hub.hf_hub_url(repo, file, revision=revision), timeout=4)
    signal.alarm(0)
    hub.hf_hub_download(repo, file, revision=revision, local_dir=folder)


if __name__ == "__main__":
    os.environ |= {"HF_HUB_DISABLE_PROGRESS_BARS": "1", "HF_HUB_DISABLE_TELEMETRY": "1", "HF_HUB_VERBOSITY": "critical"}
    main(*sys.argv[1:])
