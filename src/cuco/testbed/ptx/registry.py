"""Importing this module fills the op table."""

from __future__ import annotations

from cuco.testbed.ptx import (
    ops_async,
    ops_compare,
    ops_control,
    ops_convert,
    ops_integer,
    ops_matrix,
    ops_memory,
    ops_real,
    ops_sync,
)

__all__ = [
    "ops_async",
    "ops_compare",
    "ops_control",
    "ops_convert",
    "ops_integer",
    "ops_matrix",
    "ops_memory",
    "ops_real",
    "ops_sync",
]
