"""Helpers of the source tests: programs of this folder, read once per session."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from cuco.source import CommGraph, analyze

PROGRAMS = Path(__file__).parent / "programs"
REPOSITORY = Path(__file__).parents[2]


@cache
def graph(name: str) -> CommGraph:
    return analyze(PROGRAMS / f"{name}.cu")


@pytest.fixture
def program():
    return graph


@pytest.fixture
def write(tmp_path):
    """Writes a source into a fresh folder."""

    def make(text: str, name: str = "program.cu") -> Path:
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return path

    return make
