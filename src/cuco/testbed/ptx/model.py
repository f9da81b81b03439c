"""The typed model of a PTX module: what the parser makes and every later stage reads.

Nothing here knows C++. Terms follow NVIDIA's PTX ISA manual.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from cuco.errors import RejectedError

SIZES: dict[str, int] = {
    "pred": 1,
    "b8": 1, "u8": 1, "s8": 1,
    "b16": 2, "u16": 2, "s16": 2, "f16": 2, "bf16": 2,
    "b32": 4, "u32": 4, "s32": 4, "f32": 4, "f16x2": 4, "bf16x2": 4, "tf32": 4,
    "b64": 8, "u64": 8, "s64": 8, "f64": 8,
    "b128": 16,
    "e4m3": 1, "e5m2": 1, "e4m3x2": 2, "e5m2x2": 2,
}  # fmt: skip
"""Bytes of each fundamental PTX type (a predicate counts as one)."""


class PtxError(RejectedError):
    """The text is not PTX that this parser understands; `line` is the 1-based PTX line."""

    def __init__(self, message: str, line: int) -> None:
        super().__init__(f"PTX line {line}: {message}")
        self.line = line


# -------------------- operands
@dataclass(frozen=True)
class Reg:
    """A register, already resolved to a unique name in its function, or a special register (`%tid.x`)."""

    name: str
    special: bool = False
    negated: bool = False
    """Written `!%p` (predicates) or `-%r`."""


@dataclass(frozen=True)
class Imm:
    """An integer literal."""

    value: int


@dataclass(frozen=True)
class FloatImm:
    """A floating literal as its bits: `0f3F800000` has width 4, `0d...` and decimal literals width 8."""

    bits: int
    width: int


@dataclass(frozen=True)
class Sym:
    """A variable, parameter, function or label, plus a byte offset."""

    name: str
    offset: int = 0


@dataclass(frozen=True)
class Addr:
    """A memory operand `[base+offset]`."""

    base: Reg | Sym | Imm
    offset: int = 0


@dataclass(frozen=True)
class Vec:
    """A braced vector `{a, b, c, d}`."""

    items: tuple[Operand, ...]


@dataclass(frozen=True)
class Pair:
    """Two destinations `p|q`."""

    first: Operand
    second: Operand


@dataclass(frozen=True)
class Sink:
    """The bit bucket `_`."""


Operand = Reg | Imm | FloatImm | Sym | Addr | Vec | Pair | Sink


# -------------------- statements
@dataclass(frozen=True)
class Frame:
    """One source position, with the function it belongs to ("" where PTX does not say)."""

    file: str
    line: int
    function: str


@dataclass(frozen=True)
class Loc:
    """Where an instruction comes from: innermost frame first, then the frames it was inlined into."""

    frames: tuple[Frame, ...]

    @property
    def file(self) -> str:
        return self.frames[0].file if self.frames else ""

    @property
    def line(self) -> int:
        return self.frames[0].line if self.frames else 0


NO_LOC = Loc(())


@dataclass(frozen=True)
class CallTarget:
    """What `call` names: a function symbol or a register, with an optional prototype label."""

    callee: Reg | Sym
    returns: tuple[str, ...]
    arguments: tuple[str, ...]
    """Names of the .param variables that are passed (resolved to unique names)."""


@dataclass(eq=False)
class Instruction:
    """One PTX instruction. `op` is the full opcode with `::` kept, `parts` its dot-separated pieces."""

    op: str
    operands: list[Operand]
    guard: Reg | None
    line: int
    loc: Loc
    text: str
    call: CallTarget | None = None
    parts: tuple[str, ...] = field(init=False)
    read: list[str] | None = field(default=None, init=False, repr=False)
    """Registers read and written, filled on first use (table.py)."""
    written: list[str] | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        self.parts = tuple(self.op.split("."))

    @property
    def name(self) -> str:
        return self.parts[0]

    def has(self, *modifiers: str) -> bool:
        """Whether any of the modifiers is part of the opcode."""
        return any(m in self.parts for m in modifiers)

    @property
    def type(self) -> str:
        """The last type in the opcode, e.g. `s32` of `add.s32`; "" if it has none."""
        return next((p for p in reversed(self.parts) if p in SIZES), "")


@dataclass(frozen=True)
class Label:
    name: str
    line: int


Statement = Instruction | Label


@dataclass
class Variable:
    """A declared variable (.global, .const, .shared, .local, .param). `count` is the number of elements of
    `type`; `unsized` marks `extern .shared x[]`. `init` holds element values: integers, float bits or
    symbols.
    """

    name: str
    space: str
    type: str
    align: int
    count: int
    line: int
    unsized: bool = False
    extern: bool = False
    weak: bool = False
    init: list[Imm | FloatImm | Sym] = field(default_factory=list)

    @property
    def bytes(self) -> int:
        return SIZES[self.type] * self.count


@dataclass
class Function:
    """An .entry or .func. Registers map a unique name to its type."""

    name: str
    entry: bool
    line: int
    params: list[Variable] = field(default_factory=list)
    returns: list[Variable] = field(default_factory=list)
    registers: dict[str, str] = field(default_factory=dict)
    variables: dict[str, Variable] = field(default_factory=dict)
    """.local, .param and .shared variables declared inside, by unique name."""
    body: list[Statement] = field(default_factory=list)
    tables: dict[str, list[str]] = field(default_factory=dict)
    """.branchtargets by label."""
    prototypes: set[str] = field(default_factory=set)
    defined: bool = False
    maxntid: tuple[int, int, int] = (0, 0, 0)
    reqntid: tuple[int, int, int] = (0, 0, 0)
    minnctapersm: int = 0
    cluster: tuple[int, int, int] = (0, 0, 0)

    def instructions(self) -> list[Instruction]:
        return [s for s in self.body if isinstance(s, Instruction)]


@dataclass
class Module:
    version: str = ""
    target: str = ""
    variables: dict[str, Variable] = field(default_factory=dict)
    functions: dict[str, Function] = field(default_factory=dict)
