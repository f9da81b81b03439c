"""Modifiers of memory instructions: state space, order, scope and width, as the runtime wants them."""

from __future__ import annotations

from dataclasses import dataclass

from cuco.testbed.ptx.model import SIZES, Instruction

SPACES = ("global", "shared", "local", "param", "const")
_ORDERS = {
    "volatile": "EMU_VOLATILE",
    "mmio": "EMU_MMIO",
    "relaxed": "EMU_RELAXED",
    "acquire": "EMU_ACQUIRE",
    "release": "EMU_RELEASE",
    "acq_rel": "EMU_ACQ_REL",
    "sc": "EMU_SC",
}
_SCOPES = {"cta": "EMU_CTA", "cluster": "EMU_CLUSTER", "gpu": "EMU_GPU", "sys": "EMU_SYS", "gl": "EMU_GPU"}
_SPACE_NAMES = {"": "EMU_GENERIC", "global": "EMU_GLOBAL", "shared": "EMU_SHARED"}


@dataclass(frozen=True)
class Access:
    """What one memory instruction does to memory."""

    space: str
    """"" for generic."""
    kind: str
    """PTX type of one element."""
    lanes: int
    order: str
    """EMU_WEAK for ordinary accesses."""
    scope: str

    @property
    def bytes(self) -> int:
        return SIZES[self.kind] * self.lanes

    @property
    def strong(self) -> bool:
        return self.order != "EMU_WEAK" and self.space in _SPACE_NAMES

    @property
    def mode(self) -> str:
        return f"EMU_MODE({self.order}, {self.scope}, {_SPACE_NAMES[self.space]})"


def space_of(i: Instruction) -> str:
    """The state space of a memory instruction, without `::cta`; "" if generic."""
    for part in i.parts[1:]:
        base = part.split("::")[0]
        if base in SPACES:
            return base
    return ""


def order_of(i: Instruction, default: str) -> str:
    return next((_ORDERS[p] for p in i.parts[1:] if p in _ORDERS), default)


def scope_of(i: Instruction, default: str) -> str:
    return next((_SCOPES[p] for p in i.parts[1:] if p in _SCOPES), default)


def access_of(i: Instruction) -> Access:
    """Decode ld, ldu, st."""
    lanes = next((int(p[1:]) for p in i.parts if p in ("v2", "v4", "v8")), 1)
    order = order_of(i, "EMU_WEAK")
    scope = scope_of(i, "EMU_SYS")
    return Access(space_of(i), i.type, lanes, order, scope)


def is_strong(i: Instruction) -> bool:
    """Whether a load or store is a synchronisation access (strong, in shared or global memory)."""
    return access_of(i).strong


def is_announced(i: Instruction) -> bool:
    """st.wt writes through to memory that others (a NIC) watch: the runtime sees it, though it is weak."""
    return i.name == "st" and i.has("wt") and space_of(i) in ("", "global")
