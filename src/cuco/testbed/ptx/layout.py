"""Where variables live: kernel parameters, shared offsets, the table of globals, and who calls whom."""

from __future__ import annotations

from dataclasses import dataclass, field

from cuco.testbed.ptx.model import Addr, Function, Module, Operand, Pair, Reg, Sym, Variable, Vec


def _symbols(operand: Operand) -> list[str]:
    if isinstance(operand, Sym):
        return [operand.name]
    if isinstance(operand, Addr) and isinstance(operand.base, Sym):
        return [operand.base.name]
    if isinstance(operand, Vec):
        return [s for item in operand.items for s in _symbols(item)]
    if isinstance(operand, Pair):
        return _symbols(operand.first) + _symbols(operand.second)
    return []


def _up(value: int, align: int) -> int:
    return (value + align - 1) // align * align


@dataclass
class Reach:
    """What a function and everything it may call uses."""

    functions: set[str] = field(default_factory=set)
    shared: set[str] = field(default_factory=set)
    dynamic_align: int = 16


class Layout:
    """Addresses of a module's variables. Shared variables of one kernel never overlap; different kernels
    may share.
    """

    def __init__(self, module: Module) -> None:
        self.module = module
        self.functions = {f.name for f in module.functions.values() if f.defined}
        self._shared: dict[str, Variable] = {}
        self._offsets: dict[str, int] = {}
        self.globals: list[tuple[str, Variable]] = []
        self._global_index: dict[str, int] = {}
        self._collect()
        self._direct = {name: self._used(module.functions[name]) for name in self.functions}
        self.reach = {name: self._closure(name) for name in self.functions}
        self._place_shared()

    # -------------------- names
    def _key(self, function: Function, name: str) -> str:
        return f"{function.name}/{name}" if name in function.variables else name

    def _collect(self) -> None:
        for name, v in self.module.variables.items():
            self._add(name, v)
        for f in self.module.functions.values():
            for name, v in f.variables.items():
                self._add(f"{f.name}/{name}", v)

    def _add(self, key: str, v: Variable) -> None:
        if v.space == "shared":
            self._shared[key] = v
        elif v.space in ("global", "const"):
            self._global_index[key] = len(self.globals)
            self.globals.append((v.name, v))

    def global_index(self, function: Function, name: str) -> int | None:
        return self._global_index.get(self._key(function, name))

    def global_named(self, name: str) -> int | None:
        return self._global_index.get(name)

    # -------------------- reachability
    def _used(self, f: Function) -> tuple[set[str], set[str], bool]:
        """Functions called or taken the address of, shared variables, whether an indirect call occurs."""
        called: set[str] = set()
        shared: set[str] = set()
        indirect = False
        for i in f.instructions():
            names = [s for o in i.operands for s in _symbols(o)]
            if i.call is not None:
                indirect |= isinstance(i.call.callee, Reg)
                names += [i.call.callee.name] if isinstance(i.call.callee, Sym) else []
            for name in names:
                key = self._key(f, name)
                if key in self._shared:
                    shared.add(key)
                elif name in self.functions:
                    called.add(name)
        return called, shared, indirect

    def _closure(self, root: str) -> Reach:
        reach, todo = Reach(), [root]
        while todo:
            name = todo.pop()
            if name in reach.functions:
                continue
            reach.functions.add(name)
            called, shared, indirect = self._direct[name]
            reach.shared |= shared
            todo += called
            if indirect:  # any function of the module may be the target
                todo += [f for f in self.functions if not self.module.functions[f].entry]
        for key in reach.shared:
            if self._is_dynamic(key):
                reach.dynamic_align = max(reach.dynamic_align, self._shared[key].align)
        return reach

    # -------------------- shared memory
    def _is_dynamic(self, key: str) -> bool:
        v = self._shared[key]
        return v.unsized or v.extern

    def _place_shared(self) -> None:
        kernels = [f for f in self.functions if self.module.functions[f].entry]
        users = {key: {k for k in kernels if key in self.reach[k].shared} for key in self._shared}
        for key, v in self._shared.items():
            if self._is_dynamic(key):
                continue
            busy = sorted(
                (self._offsets[o], self._offsets[o] + self._shared[o].bytes)
                for o in self._offsets
                if users[o] & users[key]
            )
            offset = 0
            for low, high in busy:
                if _up(offset, v.align) + v.bytes <= low:
                    break
                offset = max(offset, high)
            self._offsets[key] = _up(offset, v.align)

    def shared_offset(self, function: Function, name: str) -> str | None:
        """C++ for the offset of a shared variable, or None if the name is not one."""
        key = self._key(function, name)
        if key not in self._shared:
            return None
        return "B_->dynamic_base" if self._is_dynamic(key) else f"{self._offsets[key]}u"

    def static_shared(self, kernel: str) -> int:
        ends = [
            self._offsets[k] + self._shared[k].bytes for k in self.reach[kernel].shared if k in self._offsets
        ]
        return max(ends, default=0)

    # -------------------- parameters
    def parameters(self, function: Function) -> list[tuple[Variable, int]]:
        """Kernel parameters with their byte offsets."""
        found, offset = [], 0
        for p in function.params:
            offset = _up(offset, p.align)
            found.append((p, offset))
            offset += p.bytes
        return found

    def parameter_offset(self, function: Function, name: str) -> int:
        return next(offset for p, offset in self.parameters(function) if p.name == name)

    def parameter_bytes(self, function: Function) -> int:
        return max((offset + p.bytes for p, offset in self.parameters(function)), default=0)

    def local_bytes(self, kernel: str) -> int:
        """Stack that .local variables of everything reachable may need (each function once)."""
        return sum(
            v.bytes + v.align
            for name in self.reach[kernel].functions
            for v in self.module.functions[name].variables.values()
            if v.space == "local"
        )
