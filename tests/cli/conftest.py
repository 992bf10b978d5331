"""One process for all tests of many commands."""

from collections.abc import Iterator

import pytest
from tests.cli.preloaded import Preloaded, preloaded


@pytest.fixture(scope="session")
def commands(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Preloaded]:
    """The command line without the time that imports take."""
    with preloaded(tmp_path_factory.mktemp("preloaded")) as running:
        yield running
