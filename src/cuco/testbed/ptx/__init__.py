"""PTX -> C++ for the emulator: `translate` the text, compile the result with `CXX_FLAGS` against isa/ptx.h.

The translated module calls the core through isa/abi.h and exports one symbol, `emu_module`. Matrix
instructions call functions of isa/matrix.h, which are part of the runner (isa/*.cc, compiled with
RUNTIME_CXX_FLAGS).
"""

from __future__ import annotations

from cuco.testbed.ptx.flags import CXX_FLAGS, RUNTIME_CXX_FLAGS
from cuco.testbed.ptx.model import PtxError
from cuco.testbed.ptx.translate import KernelInfo, Site, Translation, translate

__all__ = ["CXX_FLAGS", "RUNTIME_CXX_FLAGS", "KernelInfo", "PtxError", "Site", "Translation", "translate"]
