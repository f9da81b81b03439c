"""Compiler flags of translated kernels and of the matrix runtime, in one place.

Results never depend on them: the instruction sets are only used where they give the same bits (fused
multiply-add and half conversions are exact operations), contraction is off, and nothing licenses
reassociation.
"""

from __future__ import annotations

from pathlib import Path


def _host_features() -> set[str]:
    """CPU feature names of this Linux machine; empty where they cannot be read."""
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return set()
    line = next((x for x in text.splitlines() if x.startswith("flags")), "")
    return set(line.partition(":")[2].split())


def _instruction_sets() -> tuple[str, ...]:
    """-m options for what this machine has; the kernel names some features differently from the compiler."""
    names = {"avx2": "avx2", "fma": "fma", "f16c": "f16c", "popcnt": "popcnt", "abm": "lzcnt", "bmi1": "bmi"}
    have = _host_features()
    return tuple(f"-m{option}" for feature, option in names.items() if feature in have)


_MEANING = (
    "-std=c++20",
    "-fwrapv",
    "-fno-strict-aliasing",
    "-ffp-contract=off",
    "-fno-finite-loops",
    "-fno-math-errno",
)
"""PTX's meaning of C++: wrapping integers, untyped memory, separate roundings, endless loops that stay."""

CXX_FLAGS: tuple[str, ...] = (
    *_MEANING,
    "-O1",
    "-g1",
    "-w",
    "-fPIC",
    "-shared",
    "-fvisibility=hidden",
    "-fcf-protection=none",
    *_instruction_sets(),
)
"""For a translated module; add the include path of native/emulator/isa, and link nothing but -lm."""

RUNTIME_CXX_FLAGS: tuple[str, ...] = (*_MEANING, "-O2", "-fPIC", "-Wall", "-Wextra")
"""For isa/*.cc in the runner (the hot ones choose wider vectors at run time)."""
