"""Reference values, each reached by two independent routes (scipy, statsmodels, enumeration or exact fractions)."""

import json
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(scope="session")
def oracles() -> dict[str, Any]:
    values: dict[str, Any] = json.loads(Path(__file__).with_name("oracles.json").read_text(encoding="utf-8"))
    return values
