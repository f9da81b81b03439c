"""The translator's front: PTX text -> C++ text, with everything the build and the reports need to know
about it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Literal

from cuco.testbed.ptx import registry as _registry  # noqa: F401  (fills the op table)
from cuco.testbed.ptx.classes import CLASS_NAMES
from cuco.testbed.ptx.function import FunctionWriter, UnsupportedUse, number_blocks
from cuco.testbed.ptx.layout import Layout
from cuco.testbed.ptx.model import Function, Instruction, Module
from cuco.testbed.ptx.parser import parse
from cuco.testbed.ptx.slice_plan import Plan
from cuco.testbed.ptx.table import lookup
from cuco.testbed.ptx.tables import Tables

Variant = Literal["plain", "hooks", "slice"]


@dataclass(frozen=True)
class Site:
    """Where an instruction comes from. `inlined_at` holds the outer frames, innermost first."""

    ptx_line: int
    file: str
    line: int
    function: str
    inlined_at: str
    text: str


@dataclass(frozen=True)
class KernelInfo:
    """What the launcher should know about a kernel."""

    name: str
    static_shared: int
    dynamic_align: int
    parameters: tuple[tuple[int, int, int], ...]
    """(offset, bytes, alignment) each."""
    maxntid: tuple[int, int, int]
    reqntid: tuple[int, int, int]
    minnctapersm: int
    blocks: tuple[int, ...]
    """Basic blocks that it may execute."""
    may_block: bool
    sliced: bool = False
    refusal: str = ""
    guards: tuple[tuple[int, bool], ...] = ()
    """Parameter offsets of pointers that must be local for the slice to be valid, and whether it drops
    stores there.
    """


@dataclass
class Translation:
    """Result of `translate`."""

    cpp: str
    sites: list[Site]
    kernels: list[KernelInfo]
    unsupported: list[UnsupportedUse]
    block_classes: list[dict[str, int]] = field(default_factory=list)
    """Per basic block of the module, amounts by class name."""
    block_weight: list[int] = field(default_factory=list)

    def sites_json(self) -> str:
        return json.dumps([vars(s) for s in self.sites])


def translate(ptx_text: str, *, variant: Variant = "plain", source_name: str = "") -> Translation:
    """Translate one PTX module to C++ for the emulator (isa/abi.h).

    Raises PtxError for text outside the PTX grammar. Opcodes that are not implemented are no error: they
    are listed in `unsupported` and stop the run, with their line, if they are ever reached.
    """
    return _Translator(parse(ptx_text), variant, source_name).run()


class _Sites:
    """Numbers instructions on demand; 0 means no site."""

    def __init__(self) -> None:
        self.rows = [Site(0, "", 0, "", "", "")]
        self._known: dict[int, int] = {}

    def __call__(self, i: Instruction) -> int:
        found = self._known.get(id(i))
        if found is None:
            found = self._known[id(i)] = len(self.rows)
            inner = i.loc.frames[0] if i.loc.frames else None
            outer = ";".join(f"{f.function}@{f.file}:{f.line}" for f in i.loc.frames[1:])
            self.rows.append(
                Site(i.line, i.loc.file, i.loc.line, inner.function if inner else "", outer, i.text)
            )
        return found


class _Translator:
    def __init__(self, module: Module, variant: Variant, source_name: str) -> None:
        self.module = module
        self.variant = variant
        self.source_name = source_name
        self.layout = Layout(module)
        self.sites = _Sites()
        self.functions = [f for f in module.functions.values() if f.defined]
        self.blocks, self.counted = number_blocks(self.functions)
        self.plans: dict[str, Plan] = {}
        self.verdicts: dict[str, tuple[str, tuple[tuple[int, bool], ...]]] = {}
        """Per kernel: reason for not slicing ("" if sliced) and the guarded parameter offsets."""

    def run(self) -> Translation:
        if self.variant == "slice":
            from cuco.testbed.ptx.slice import slice_module

            self.plans, self.verdicts = slice_module(self.module, self.layout, self.blocks)
        counter = iter(range(1 << 30))
        written = [
            FunctionWriter(
                f, self.blocks[f.name], self.layout, self.sites, lambda: next(counter), self.plans.get(f.name)
            ).write()
            for f in self.functions
        ]
        kernels = [self._kernel(f) for f in self.functions if f.entry]
        unsupported = [u for w in written for u in w.unsupported]
        classes = [dict(b.classes) for b in self.counted]
        weights = [b.weight for b in self.counted]
        result = Translation("", self.sites.rows, kernels, unsupported, classes, weights)
        tables = Tables(self.module, self.layout, result, self.variant, self.source_name)
        head = [
            '#include "ptx.h"',
            f"#define EMU_CLASS_LOAD_BULK {CLASS_NAMES.index('ld_global_bytes')}",
            f"#define EMU_CLASS_STORE_BULK {CLASS_NAMES.index('st_global_bytes')}",
        ]
        if self.variant == "hooks":
            head.insert(0, "#define EMU_HOOKED 1")
        parts = [*head, *(w.declaration for w in written), *(w.definition for w in written)]
        result.cpp = "\n".join([*parts, '#line 1 "cuco-tables"', tables.text(), ""])
        return result

    def _kernel(self, f: Function) -> KernelInfo:
        reach = self.layout.reach[f.name]
        blocks = [b.id for name in sorted(reach.functions) for b in self.blocks[name] if b.id >= 0]
        refusal, guards = self.verdicts.get(f.name, ("", ()))
        return KernelInfo(
            name=f.name,
            static_shared=self.layout.static_shared(f.name),
            dynamic_align=reach.dynamic_align,
            parameters=tuple((offset, p.bytes, p.align) for p, offset in self.layout.parameters(f)),
            maxntid=f.maxntid,
            reqntid=f.reqntid,
            minnctapersm=f.minnctapersm,
            blocks=tuple(sorted(blocks)),
            may_block=any(
                _may_block(i) for name in reach.functions for b in self.blocks[name] for i in b.instructions
            ),
            sliced=self.variant == "slice" and not refusal,
            refusal=refusal,
            guards=guards,
        )


def _may_block(i: Instruction) -> bool:
    """Whether an instruction can suspend its thread."""
    entry = lookup(i)
    if entry is None:
        return False
    if entry.kind == "load":
        return i.has("volatile", "relaxed", "acquire", "mmio")
    return entry.kind in ("atomic", "barrier", "mbarrier", "warp", "matrix", "async", "effect", "call")
