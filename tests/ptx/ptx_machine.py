"""Executes PTX text: translate, compile, run on the small core of mini_core.cc. Helper of the tests in this
folder.
"""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import cuco
from cuco.testbed.ptx import CXX_FLAGS, RUNTIME_CXX_FLAGS, Translation, translate
from cuco.testbed.ptx.classes import CLASS_NAMES

HERE = Path(__file__).parent
ISA = Path(cuco.__file__).parent / "native" / "emulator" / "isa"
HEADER = ".version 8.5\n.target sm_90\n.address_size 64\n"

Argument = np.ndarray | int | bytes


@dataclass
class Result:
    failure: str
    events: str
    printed: str
    blocks: np.ndarray
    """Executions per basic block."""
    classes: dict[str, int]
    progress: int


class Program:
    """A compiled module."""

    def __init__(self, core: ctypes.CDLL, library: Path, translation: Translation) -> None:
        self.core = core
        self.translation = translation
        self.library = ctypes.CDLL(str(library))
        self.library.emu_module.restype = ctypes.c_void_p
        self.module = ctypes.c_void_p(self.library.emu_module())
        self.load()

    def load(self) -> None:
        """Fresh globals; the small core holds those of one module at a time."""
        self.core.mini_load(self.module)

    def global_bytes(self, name: str, size: int) -> bytes:
        self.core.mini_global.restype = ctypes.c_uint64
        address = self.core.mini_global(self.module, name.encode())
        assert address, f"no global {name}"
        return ctypes.string_at(address, size)

    def run(
        self,
        kernel: str,
        args: Sequence[Argument],
        *,
        grid: tuple[int, int, int] = (1, 1, 1),
        block: tuple[int, int, int] = (32, 1, 1),
        shared: int = 0,
        arena: tuple[int, int] = (0, 2**64 - 1),
    ) -> Result:
        self.load()
        info = next(k for k in self.translation.kernels if k.name == kernel)
        size = max((o + s for o, s, _ in info.parameters), default=1)
        params = bytearray(size)
        for value, (offset, length, _) in zip(args, info.parameters, strict=True):
            if isinstance(value, np.ndarray):
                raw = int(value.ctypes.data).to_bytes(8, "little")
            elif isinstance(value, bytes):
                raw = value
            else:
                raw = (int(value) % (1 << (8 * length))).to_bytes(length, "little")
            params[offset : offset + length] = raw
        blocks = np.zeros(max(1, len(self.translation.block_weight)), np.uint64)
        dynamic = np.zeros(len(CLASS_NAMES), np.uint64)
        progress = ctypes.c_uint64(0)
        three = ctypes.c_uint32 * 3
        code = self.core.mini_launch(
            self.module,
            kernel.encode(),
            three(*grid),
            three(*block),
            bytes(params),
            ctypes.c_uint32(shared),
            blocks.ctypes.data_as(ctypes.c_void_p),
            dynamic.ctypes.data_as(ctypes.c_void_p),
            ctypes.c_uint64(arena[0]),
            ctypes.c_uint64(arena[1]),
            ctypes.byref(progress),
        )
        classes = {name: int(dynamic[n]) for n, name in enumerate(CLASS_NAMES)}
        for count, amounts in zip(blocks, self.translation.block_classes, strict=False):
            for name, amount in amounts.items():
                classes[name] += int(count) * amount
        failure = self._text("mini_failure") if code else ""
        return Result(
            failure, self._text("mini_events"), self._text("mini_printed"), blocks, classes, progress.value
        )

    def _text(self, name: str) -> str:
        function = getattr(self.core, name)
        function.restype = ctypes.c_char_p
        return str(function().decode())


class Part(Program):
    """One kernel of a batch, under its own name `k`."""

    def __init__(self, whole: Program, name: str) -> None:
        self.__dict__.update(whole.__dict__)
        self.name = name

    def run(self, kernel: str, args: Sequence[Argument], **launch: Any) -> Result:
        assert kernel == "k"
        return super().run(self.name, args, **launch)


class Machine:
    """Builds the small core once and programs on demand."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.count = 0
        self.built: dict[tuple[str, str], Program] = {}
        core = folder / "mini_core.so"
        sources = [HERE / "mini_core.cc", ISA / "matrix.cc", ISA / "matrix_move.cc"]
        flags = [*RUNTIME_CXX_FLAGS, "-shared", f"-I{ISA}"]
        subprocess.run(["g++", *flags, *map(str, sources), "-o", str(core)], check=True)
        self.core = ctypes.CDLL(str(core), mode=ctypes.RTLD_GLOBAL)

    def build(self, ptx: str, *, variant: str = "plain") -> Program:
        """A program for this text; equal texts are compiled once."""
        known = self.built.get((ptx, variant))
        if known is not None:
            known.load()
            return known
        self.count += 1
        translation = translate(ptx, variant=variant, source_name="test")  # type: ignore[arg-type]
        source = self.folder / f"m{self.count}.cpp"
        library = source.with_suffix(".so")
        source.write_text(translation.cpp)
        command = ["g++", *CXX_FLAGS, "-g0", f"-I{ISA}", str(source), "-o", str(library), "-lm"]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        program = self.built[ptx, variant] = Program(self.core, library, translation)
        return program

    def batch(self, texts: Sequence[str]) -> None:
        """Compile texts with one kernel `k` each as one module; `build` then finds them by their text."""
        names = {text: f"k{n}" for n, text in enumerate(dict.fromkeys(texts))}
        bodies = (
            text.removeprefix(HEADER).replace(".entry k(", f".entry {name}(") for text, name in names.items()
        )
        program = self.build(HEADER + "".join(bodies))
        for text, name in names.items():
            self.built[text, "plain"] = Part(program, name)


# -------------------- one opcode at a time
_REGISTER = {1: "b16", 2: "b16", 4: "b32", 8: "b64", 16: "b128"}
_DTYPE = {
    "b8": np.uint8, "u8": np.uint8, "s8": np.int8, "b16": np.uint16, "u16": np.uint16, "s16": np.int16,
    "b32": np.uint32, "u32": np.uint32, "s32": np.int32, "b64": np.uint64, "u64": np.uint64, "s64": np.int64,
    "f32": np.float32, "f64": np.float64, "pred": np.uint32,
}  # fmt: skip


@dataclass(frozen=True)
class Case:
    """`code` names its inputs a, b, c, ... and its outputs d (and e); types are those of the arrays they
    live in.
    """

    code: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...] = ("b32",)

    @property
    def id(self) -> str:
        return self.code.split(" ")[0]


def _declare(name: str, kind: str) -> str:
    if kind == "pred":
        return f".reg .pred {name};"
    return f".reg .{kind if kind in ('f32', 'f64') else _REGISTER[_DTYPE_SIZE[kind]]} {name};"


_DTYPE_SIZE = {k: np.dtype(v).itemsize for k, v in _DTYPE.items()}


def case_kernel(name: str, case: Case) -> str:
    """A kernel that applies the case's code to element number (ctaid * ntid + tid) of every input array."""
    names = "abcfghij"[: len(case.inputs)]
    outs = "de"[: len(case.outputs)]
    params = ", ".join(f".param .u64 p_{x}" for x in (*outs, *names))
    lines = [f".visible .entry {name}({params}) {{", ".reg .b32 i_, x_, y_, z_; .reg .b64 p_, o_;"]
    lines += [_declare(x, k) for x, k in zip(names, case.inputs, strict=True)]
    lines += [_declare(x, k) for x, k in zip(outs, case.outputs, strict=True)]
    lines.append("mov.u32 x_, %tid.x; mov.u32 y_, %ctaid.x; mov.u32 z_, %ntid.x; mad.lo.u32 i_, y_, z_, x_;")
    for x, kind in zip(names, case.inputs, strict=True):
        lines.append(
            f"mul.wide.u32 o_, i_, {_DTYPE_SIZE[kind]}; ld.param.u64 p_, [p_{x}]; add.u64 p_, p_, o_;"
        )
        if kind == "pred":
            lines.append(f"ld.global.u32 x_, [p_]; setp.ne.u32 {x}, x_, 0;")
        else:
            lines.append(f"ld.global.{kind} {x}, [p_];")
    lines.append(case.code)
    for x, kind in zip(outs, case.outputs, strict=True):
        lines.append(
            f"mul.wide.u32 o_, i_, {_DTYPE_SIZE[kind]}; ld.param.u64 p_, [p_{x}]; add.u64 p_, p_, o_;"
        )
        if kind == "pred":
            lines.append(f"selp.u32 x_, 1, 0, {x}; st.global.u32 [p_], x_;")
        else:
            lines.append(f"st.global.{kind} [p_], {x};")
    return "\n".join([*lines, "ret; }", ""])


class CaseRunner:
    """Compiles many cases into one module and runs each on arrays."""

    def __init__(self, machine: Machine, cases: Sequence[Case]) -> None:
        self.cases = list(cases)
        text = HEADER + "".join(case_kernel(f"k{n}", c) for n, c in enumerate(self.cases))
        self.program = machine.build(text)
        assert not self.program.translation.unsupported, self.program.translation.unsupported

    def __call__(self, case: Case, *inputs: np.ndarray) -> list[np.ndarray]:
        count = len(inputs[0])
        block = 256 if count % 256 == 0 else count
        outs = [np.zeros(count, _DTYPE[k]) for k in case.outputs]
        arrays = [np.ascontiguousarray(x.astype(_DTYPE[k])) for x, k in zip(inputs, case.inputs, strict=True)]
        name = f"k{self.cases.index(case)}"
        result = self.program.run(name, [*outs, *arrays], grid=(count // block, 1, 1), block=(block, 1, 1))
        assert not result.failure, result.failure
        return outs


def bits_to_float(values: np.ndarray) -> np.ndarray:
    return values.view(np.float32 if values.dtype.itemsize == 4 else np.float64)


Reference = Callable[..., object]
