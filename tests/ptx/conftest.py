"""Makes the test helper `ptx_machine` importable and shares its build between tests."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from ptx_machine import Machine  # noqa: E402


@pytest.fixture(scope="session")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    yield Machine(tmp_path_factory.mktemp("ptx"))
