"""C++ of a counted loop: a function that runs its skeleton once per distinct input, and a table of what
came out.
"""

from __future__ import annotations

from collections.abc import Callable

from cuco.testbed.ptx.blocks import Block
from cuco.testbed.ptx.emitter import Emitter, convert, storage, variable
from cuco.testbed.ptx.model import Instruction, Reg
from cuco.testbed.ptx.ops_control import label
from cuco.testbed.ptx.slice_plan import Plan
from cuco.testbed.ptx.slice_regions import Region

_ENTRIES = 64
"""Inputs remembered per region: threads of a block mostly share one or a few."""


def to_word(e: Emitter, name: str) -> str:
    """A register's value as 64 bits."""
    have = storage(e.f.registers[name])
    value = variable(name)
    if have in ("float", "double"):
        value = convert(value, have, "uint32_t" if have == "float" else "uint64_t")
    return f"uint64_t({value})"


def from_word(e: Emitter, name: str, word: str) -> str:
    """A register's value out of 64 bits."""
    want = storage(e.f.registers[name])
    if want in ("float", "double"):
        whole = "uint32_t" if want == "float" else "uint64_t"
        return f"bits<{want}>({whole}({word}))"
    return f"{want}({word})"


class RegionWriter:
    """`statement` writes one kept instruction; `number` is unique in the module."""

    def __init__(
        self,
        e: Emitter,
        blocks: list[Block],
        region: Region,
        plan: Plan,
        statement: Callable[[Instruction], str],
        number: int,
    ) -> None:
        self.e = e
        self.blocks = blocks
        self.region = region
        self.plan = plan
        self.statement = statement
        self.name = f"RG_{number}"
        self.counted = [n for n in region.blocks if blocks[n].id >= 0]

    def write(self) -> tuple[str, list[str]]:
        """(definitions before the function, statements in place of the header)."""
        return self._definition(), self._use()

    # -------------------- the skeleton
    def _definition(self) -> str:
        r = self.region
        inputs = len(r.inputs) + len(r.special) + len(r.parameters)
        lines = [
            f"struct {self.name} {{ uint64_t in[{max(inputs, 1)}], out[{max(len(r.outputs), 1)}], "
            f"d[{max(len(self.counted), 1)}], w; uint32_t exit; bool valid; }};",
            f"static void {self.name}_run(EmuThread* T_, {self.name}& m_) {{",
            f"uint64_t w_ = 0, d_[{max(len(self.counted), 1)}] = {{}}; uint32_t exit_ = 0;",
            *self._locals(),
            f"goto BL_{r.header};",
        ]
        for n in r.blocks:
            lines += self._block(n)
        for k, target in enumerate(r.exits):
            names = " ".join(f"{label(x)}:;" for x in self.blocks[target].labels)
            lines.append(f"{names} BL_{target}:; exit_ = {k}; goto done_;")
        lines.append("done_:;")
        lines += [f"m_.out[{k}] = {to_word(self.e, name)};" for k, name in enumerate(r.outputs)]
        lines.append("memcpy(m_.d, d_, sizeof d_); m_.w = w_; m_.exit = exit_; m_.valid = true; }")
        return "\n".join(lines)

    def _locals(self) -> list[str]:
        r = self.region
        names = {n for b in r.blocks for i in self.blocks[b].instructions for n in self._touched(i)}
        by_type: dict[str, list[str]] = {}
        for name in sorted(names | set(r.inputs) | set(r.outputs)):
            by_type.setdefault(storage(self.e.f.registers[name]), []).append(f"{variable(name)} = 0")
        lines = [f"{ctype} {', '.join(group)};" for ctype, group in by_type.items()]
        for k, name in enumerate(r.inputs):
            lines.append(f"{variable(name)} = {from_word(self.e, name, f'm_.in[{k}]')};")
        return lines

    def _touched(self, i: Instruction) -> list[str]:
        from cuco.testbed.ptx.table import reads, writes

        if self.plan.keeps(i):
            return [*reads(i), *writes(i)]
        return [i.guard.name] if i.guard is not None else []

    def _block(self, n: int) -> list[str]:
        block = self.blocks[n]
        lines = [f"{' '.join(f'{label(x)}:;' for x in block.labels)} BL_{n}:;"]
        if block.instructions:
            slot = self.counted.index(n)
            count = f"d_[{slot}]++; w_ += {block.weight};"
            body = " ".join(self._instruction(i) for i in block.instructions if self.plan.keeps(i))
            guard = block.instructions[0].guard
            if block.guarded and guard is not None:
                lines.append(f"if ({self.e.read(guard, 'pred')}) {{ {count} {body} }}")
            else:
                lines.append(f"{count} {body}")
        following = n + 1
        if following in self.region.exits or following not in self.region.blocks:
            if following in block.successors:
                lines.append(f"goto BL_{following};")
        elif not block.successors:
            lines.append("goto done_;")
        return lines

    def _instruction(self, i: Instruction) -> str:
        if i in self.region.barriers:
            return ""
        if i in self.region.parameters:
            slot = len(self.region.inputs) + len(self.region.special) + self.region.parameters.index(i)
            target = i.operands[0]
            assert isinstance(target, Reg)
            return f"{variable(target.name)} = {from_word(self.e, target.name, f'm_.in[{slot}]')};"
        if i.name == "bra":
            return self._branch(i)
        self.e.special_values = {
            name: f"m_.in[{len(self.region.inputs) + k}]" for k, name in enumerate(self.region.special)
        }
        try:
            return self.statement(i)
        finally:
            self.e.special_values = {}

    def _branch(self, i: Instruction) -> str:
        from cuco.testbed.ptx.model import Sym

        target = i.operands[0]
        assert isinstance(target, Sym)
        check = ""
        if self.e.is_backward(i, target.name):
            site = self.e.site(i)
            check = f"if (__builtin_expect(T_->progress + w_ > T_->fuel, 0)) emu_out_of_fuel(T_, {site}); "
        jump = f"{{ {check}goto {label(target.name)}; }}"
        return f"if ({self.e.read(i.guard, 'pred')}) {jump}" if i.guard is not None else jump

    # -------------------- its use
    def _use(self) -> list[str]:
        r, n = self.region, self.name
        values = [to_word(self.e, name) for name in r.inputs]
        values += [
            f"uint64_t({self.e.read(Reg(name, special=True), _special_type(name))})" for name in r.special
        ]
        values += [self._parameter(i) for i in r.parameters]
        lines = [
            f"{{ static {n} memo_[{_ENTRIES}]; const uint64_t in_[] = {{{', '.join(values) or '0'}}}; "
            "uint64_t h_ = 0; for (uint64_t x_ : in_) h_ = (h_ ^ x_) * 0x9e3779b97f4a7c15ull; "
            f"{n}& m_ = memo_[h_ >> 58]; "
            "if (!m_.valid || memcmp(m_.in, in_, sizeof in_) != 0) "
            f"{{ memcpy(m_.in, in_, sizeof in_); {n}_run(T_, m_); }}",
        ]
        adds = " ".join(f"C_[{self.blocks[b].id}] += m_.d[{k}];" for k, b in enumerate(self.counted))
        lines.append(f"{adds} T_->progress += m_.w;")
        lines += [f"{variable(x)} = {from_word(self.e, x, f'm_.out[{k}]')};" for k, x in enumerate(r.outputs)]
        lines.append(self._barrier())
        cases = " ".join(f"case {k}: goto BX_{target};" for k, target in enumerate(r.exits))
        lines.append(f"switch (m_.exit) {{ {cases} }} __builtin_unreachable(); }}")
        return lines

    def _parameter(self, i: Instruction) -> str:
        return f"uint64_t(emu_read<{_word_type(i)}>({self.e.address(i.operands[1], 'param')}))"

    def _barrier(self) -> str:
        """One barrier stands for all of the loop's: what came before still lies in an earlier phase than
        what follows.
        """
        whole = [i for i in self.region.barriers if i.parts[1] != "warp"]
        chosen = whole or self.region.barriers
        if not chosen:
            return ""
        reached = " + ".join(
            f"m_.d[{k}]"
            for k, b in enumerate(self.counted)
            if any(i in chosen for i in self.blocks[b].instructions)
        )
        return f"if ({reached}) {{ {self.statement(chosen[0])} }}"


def _special_type(name: str) -> str:
    return "u64" if name in ("%gridid", "%clock64", "%globaltimer") else "u32"


def _word_type(i: Instruction) -> str:
    from cuco.testbed.ptx.model import SIZES

    signed = i.type.startswith("s")
    return f"{'' if signed else 'u'}int{8 * SIZES[i.type]}_t"
