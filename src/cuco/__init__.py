"""CUCo: rewrites host-driven CUDA and NCCL code so that kernels communicate themselves, and proves it.

Importing this package costs nothing: the entry points below load what they need when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cuco.api import optimize

__version__ = "0.1.0"
__all__ = ["__version__", "optimize"]


def __getattr__(name: str) -> Any:
    if name == "optimize":
        from cuco.api import optimize

        return optimize
    raise AttributeError(f"module 'cuco' has no attribute {name!r}")
