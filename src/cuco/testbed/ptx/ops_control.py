"""Branches, calls, exit, traps, sleeping, printf and the hints around them."""

from __future__ import annotations

from cuco.testbed.ptx.emitter import Emitter, identifier, variable
from cuco.testbed.ptx.model import Instruction, Reg, Sym, Vec
from cuco.testbed.ptx.table import Unsupported, op


def label(name: str) -> str:
    return "L_" + identifier(name)


@op("bra", kind="control", dests=0)
def branch(e: Emitter, i: Instruction) -> str:
    target = i.operands[0]
    if not isinstance(target, Sym):
        raise Unsupported("a branch to a register")
    check = f"BACK_EDGE({e.site(i)}); " if e.is_backward(i, target.name) else ""
    return f"{{ {check}goto {label(target.name)}; }}"


@op("brx", kind="control", dests=0)
def branch_indexed(e: Emitter, i: Instruction) -> str:
    table = i.operands[1]
    if isinstance(table, Sym) and table.name in e.f.tables:
        targets = e.f.tables[table.name]
    elif isinstance(table, Vec):
        targets = [t.name for t in table.items if isinstance(t, Sym)]
    else:
        raise Unsupported("brx.idx without a table")
    cases = " ".join(f"case {n}: goto {label(t)};" for n, t in enumerate(targets))
    # An index outside the table is undefined in PTX: a definite stop here.
    return (
        f"BACK_EDGE({e.site(i)}); switch ({e.read(i.operands[0], 'u32')}) {{ {cases} "
        f'default: emu_trap(T_, {e.site(i)}, "brx.idx: index outside its table"); }}'
    )


@op("ret", kind="control", dests=0)
def ret(e: Emitter, i: Instruction) -> str:
    return "return;"


@op("exit", kind="control", dests=0)
def exit_thread(e: Emitter, i: Instruction) -> str:
    return "return;" if e.f.entry else "emu_exit(T_);"


@op("trap", "brkpt", kind="effect", dests=0)
def trap(e: Emitter, i: Instruction) -> str:
    return f'emu_trap(T_, {e.site(i)}, "{i.name}");'


@op("nanosleep", kind="effect", dests=0)
def nanosleep(e: Emitter, i: Instruction) -> str:
    return f"emu_nanosleep(T_, {e.read(i.operands[0], 'u32')}, {e.site(i)});"


@op("griddepcontrol", "setmaxnreg", "pmevent", kind="hint", dests=0)
def control_hint(e: Emitter, i: Instruction) -> str:
    """Programmatic launches are not overlapped here, so waiting for the previous grid is already done."""
    return ""


# -------------------- calls
def _builtin(e: Emitter, i: Instruction, name: str, returns: str, a: list[str]) -> str | None:
    """Calls into the CUDA device runtime that the core implements; arguments are the .param arrays."""
    site = e.site(i)

    def value(n: int, ctype: str) -> str:
        return f"emu_read<{ctype}>(uint64_t({a[n]}))"

    text = "reinterpret_cast<const char*>"
    if name == "vprintf":
        call = f"emu_vprintf(T_, {text}({value(0, 'uint64_t')}), {text}({value(1, 'uint64_t')}), {site})"
        return f"emu_write<int32_t>(uint64_t({returns}), {call});"
    if name == "malloc":
        return f"emu_write<uint64_t>(uint64_t({returns}), emu_malloc(T_, {value(0, 'uint64_t')}, {site}));"
    if name == "free":
        return f"emu_free(T_, {value(0, 'uint64_t')}, {site});"
    if name == "__assertfail":
        strings = [f"{text}({value(n, 'uint64_t')})" for n in (0, 1, 3)]
        return (
            f"emu_assertfail(T_, {strings[0]}, {strings[1]}, {value(2, 'uint32_t')}, {strings[2]}, {site});"
        )
    return None


@op("call", kind="call", dests=0)
def call(e: Emitter, i: Instruction) -> str:
    target = i.call
    assert target is not None
    returns = variable(target.returns[0]) if target.returns else "nullptr"
    if any(name in e.f.registers for name in (*target.returns, *target.arguments)):
        raise Unsupported("a call with register parameters")
    arguments = [variable(name) for name in target.arguments]
    if isinstance(target.callee, Reg):
        types = ", ".join(["EmuThread*", "char*"] + ["char*"] * len(arguments))
        function = f"reinterpret_cast<void (*)({types})>({e.read(target.callee, 'u64')})"
    elif target.callee.name in e.layout.functions:
        function = f"F_{identifier(target.callee.name)}"
    else:
        code = _builtin(e, i, target.callee.name, returns, arguments)
        if code is None:
            raise Unsupported(f"call of {target.callee.name}, which has no body")
        return code
    return f"{function}({', '.join(['T_', returns, *arguments])});"
