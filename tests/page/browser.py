"""Chromium without a window, where there is one."""

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome")
OPTIONS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update", "--hide-scrollbars"),
    *("--virtual-time-budget=5000", "--enable-logging=stderr"),
)


def browse(page: Path, fragment: str = "", options: Sequence[str] = ()) -> tuple[str, str]:
    """The document as it is once its script has run, and what the browser logged.

    Skips the test without a browser, unless `MCPTRIALS_REQUIRE` names `browser`.
    """
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        if "browser" in os.environ.get("MCPTRIALS_REQUIRE", ""):
            pytest.fail("a browser is required, and no Chromium is installed")
        pytest.skip("needs Chromium")
    address = f"{page.as_uri()}{fragment}"
    own = f"--user-data-dir={page.parent / 'browser'}"
    ended = subprocess.run(
        [found, *OPTIONS, own, "--dump-dom", *options, address], capture_output=True, check=True, timeout=60
    )
    return ended.stdout.decode(), ended.stderr.decode("utf-8", "replace")
