"""The tables at the end of a translated module: kernels, globals, sites, block classes (abi.h, EmuModule)."""

from __future__ import annotations

import itertools
import struct
from typing import TYPE_CHECKING

from cuco.testbed.ptx.classes import CLASS_NAMES
from cuco.testbed.ptx.emitter import identifier
from cuco.testbed.ptx.layout import Layout
from cuco.testbed.ptx.model import SIZES, FloatImm, Module, PtxError, Sym, Variable

if TYPE_CHECKING:
    from cuco.testbed.ptx.translate import KernelInfo, Translation


def quoted(text: str) -> str:
    """A C string literal."""
    out = []
    for byte in text.encode():
        char = chr(byte)
        plain = 32 <= byte < 127 and char not in '"\\?'
        out.append(char if plain else f"\\{byte:03o}")
    return '"' + "".join(out) + '"'


def ranges(numbers: tuple[int, ...]) -> list[tuple[int, int]]:
    """Sorted numbers as (first, count) runs."""
    runs = []
    for _, group in itertools.groupby(enumerate(numbers), key=lambda pair: pair[1] - pair[0]):
        run = [value for _, value in group]
        runs.append((run[0], len(run)))
    return runs


class Tables:
    def __init__(
        self, module: Module, layout: Layout, t: Translation, variant: str, source_name: str
    ) -> None:
        self.module = module
        self.layout = layout
        self.t = t
        self.variant = variant
        self.source_name = source_name

    def text(self) -> str:
        return "\n".join(
            [*self._globals(), *self._kernels(), *self._sites(), *self._classes(), self._module()]
        )

    # -------------------- globals
    def _globals(self) -> list[str]:
        lines, rows = [], []
        for n, (name, v) in enumerate(self.layout.globals):
            data, relocations = self._image(v)
            init, reloc = "nullptr", "nullptr"
            if data:
                init = f"init_{n}_"
                lines.append(f"static const unsigned char {init}[] = {{{','.join(str(b) for b in data)}}};")
            if relocations:
                reloc = f"reloc_{n}_"
                lines.append(f"static const EmuReloc {reloc}[] = {{{', '.join(relocations)}}};")
            space = "EMU_CONST" if v.space == "const" else "EMU_GLOBAL"
            rows.append(
                f"{{{quoted(name)}, {v.bytes}, {v.align}, {init}, {len(data)}, "
                f"{len(relocations)}, {reloc}, {space}}}"
            )
        rows.append("{}")
        return [*lines, "static const EmuGlobal globals_[] = {", ",\n".join(rows), "};"]

    def _image(self, v: Variable) -> tuple[bytes, list[str]]:
        """Initial bytes of a variable and its pointer relocations."""
        size = SIZES[v.type]
        data, relocations = bytearray(), []
        for n, value in enumerate(v.init):
            if isinstance(value, Sym):
                relocations.append(self._relocation(value, n * size, v))
                data += bytes(size)
            elif isinstance(value, FloatImm):
                data += _float_bytes(value, v.type)
            else:
                data += (value.value & ((1 << (8 * size)) - 1)).to_bytes(size, "little")
        return bytes(data), relocations

    def _relocation(self, value: Sym, offset: int, v: Variable) -> str:
        if SIZES[v.type] != 8:
            raise PtxError(f"initialiser of {v.name}: an address in a {v.type}", v.line)
        index = self.layout.global_named(value.name)
        if index is not None:
            return f"{{{offset}, EMU_RELOC_GLOBAL, {index}, nullptr, {value.offset}}}"
        if value.name in self.layout.functions:
            function = f"reinterpret_cast<void*>(&F_{identifier(value.name)})"
            return f"{{{offset}, EMU_RELOC_FUNCTION, 0, {function}, 0}}"
        raise PtxError(f"initialiser of {v.name}: unknown symbol {value.name}", v.line)

    # -------------------- kernels
    def _kernels(self) -> list[str]:
        lines, rows = [], []
        for n, k in enumerate(self.t.kernels):
            lines.append(
                _array(f"params_{n}_", "EmuParam", [f"{{{o}, {s}, {a}}}" for o, s, a in k.parameters])
            )
            lines.append(_array(f"ranges_{n}_", "EmuRange", [f"{{{f}, {c}}}" for f, c in ranges(k.blocks)]))
            lines.append(
                _array(
                    f"guards_{n}_",
                    "EmuGuard",
                    [f"{{{o}, {self._parameter(k, o)}, {int(w)}}}" for o, w in k.guards],
                )
            )
            rows.append(self._kernel_row(n, k))
        rows.append("{}")
        return [*lines, "static const EmuKernel kernels_[] = {", ",\n".join(rows), "};"]

    def _parameter(self, k: KernelInfo, offset: int) -> int:
        return next((n for n, (o, size, _) in enumerate(k.parameters) if o <= offset < o + size), 0)

    def _kernel_row(self, n: int, k: KernelInfo) -> str:
        size = max((o + s for o, s, _ in k.parameters), default=0)
        three = ", ".join("{" + ", ".join(str(x) for x in limits) + "}" for limits in (k.maxntid, k.reqntid))
        refusal = quoted(k.refusal) if k.refusal else "nullptr"
        return (
            f"{{{quoted(k.name)}, K_{identifier(k.name)}, {k.static_shared}, {k.dynamic_align}, "
            f"{self.layout.local_bytes(k.name)}, {size}, {len(k.parameters)}, params_{n}_, "
            f"{three}, {k.minnctapersm}, "
            f"{len(ranges(k.blocks))}, ranges_{n}_, {int(k.may_block)}, {int(k.sliced)}, {refusal}, "
            f"{len(k.guards)}, guards_{n}_}}"
        )

    # -------------------- sites, classes
    def _sites(self) -> list[str]:
        rows = [
            f"{{{s.ptx_line}, {s.line}, {quoted(s.file)}, {quoted(s.function)}, "
            f"{quoted(s.inlined_at)}, {quoted(s.text)}}}"
            for s in self.t.sites
        ]
        return ["static const EmuSite sites_[] = {", ",\n".join(rows), "};"]

    def _classes(self) -> list[str]:
        rows = [",".join(str(c.get(name, 0)) for name in CLASS_NAMES) for c in self.t.block_classes] or ["0"]
        names = ", ".join(quoted(name) for name in CLASS_NAMES)
        weights = ",".join(str(w) for w in self.t.block_weight) or "0"
        return [
            f"static const char* const class_names_[] = {{{names}}};",
            "static const uint32_t block_classes_[] = {",
            ",\n".join(rows),
            "};",
            f"static const uint32_t block_weight_[] = {{{weights}}};",
        ]

    def _module(self) -> str:
        variant = {"plain": "EMU_PLAIN", "hooks": "EMU_HOOKS", "slice": "EMU_SLICE"}[self.variant]
        return (
            f"static const EmuModule module_ = {{EMU_ABI, {variant}, {quoted(self.source_name)}, "
            f"{len(self.t.kernels)}, kernels_, {len(self.layout.globals)}, globals_, "
            f"{len(self.t.sites)}, sites_, "
            f"{len(CLASS_NAMES)}, class_names_, {len(self.t.block_weight)}, "
            "block_classes_, block_weight_};\n"
            'extern "C" __attribute__((visibility("default"))) '
            "const EmuModule* emu_module(void) { return &module_; }"
        )


def _array(name: str, ctype: str, rows: list[str]) -> str:
    return f"static const {ctype} {name}[] = {{{', '.join([*rows, '{}'])}}};"


def _float_bytes(value: FloatImm, kind: str) -> bytes:
    if value.width == SIZES[kind]:
        return value.bits.to_bytes(value.width, "little")
    if kind == "f32":
        (number,) = struct.unpack("<d", value.bits.to_bytes(8, "little"))
        return struct.pack("<f", number)
    if kind == "f64":
        (number,) = struct.unpack("<f", value.bits.to_bytes(4, "little"))
        return struct.pack("<d", number)
    return value.bits.to_bytes(8, "little")[: SIZES[kind]]
