"""What the host walker knows about expressions: which buffers, functions, strings and variables they
denote."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from cuco.source.clang_ast import Node


@dataclass(eq=False)
class Memory:
    """A buffer under observation. ``depth`` is that of the helper whose local name it has so far (0: its own
    name)."""

    name: str
    allocator: str
    bytes: str | None = None
    line: int | None = None
    role: str | None = None
    depth: int = 0
    device: bool = True
    windows: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Slot:
    """A variable, field or array element: ``key`` tells it from others, ``text`` is how the source calls
    it."""

    key: str
    text: str
    pointer: bool = False


@dataclass(frozen=True, eq=False)
class Callee:
    """Something that can be called: a function declaration, or a lambda expression."""

    node: Node
    name: str


@dataclass(frozen=True, eq=False)
class Value:
    """What an expression may denote. ``buffers`` are what a pointer may point into, ``shifted`` not at its
    start; ``descriptors`` are the cuco_buffers that a pointer to one may name, ``constant`` the enumerator
    of an enumeration."""

    text: str
    buffers: tuple[Memory, ...] = ()
    shifted: bool = False
    offset: str = ""
    callee: Callee | None = None
    callees: tuple[Callee, ...] = ()
    items: tuple[Value, ...] | None = None
    target: Slot | None = None
    literal: str | None = None
    descriptors: tuple[Memory, ...] = ()
    window: bool = False
    constant: str = ""
    node: Node | None = None
    fields: tuple[tuple[str, Value], ...] = ()

    @property
    def known(self) -> bool:
        """Whether anything beyond the text is known."""
        return bool(
            self.buffers
            or self.callee
            or self.callees
            or self.items is not None
            or self.target
            or self.literal is not None
            or self.descriptors
            or self.constant
        )

    @property
    def reachable(self) -> tuple[Memory, ...]:
        """Buffers behind an argument: of a pointer, or of the fields of a struct passed by value."""
        return tuple(
            dict.fromkeys((*self.buffers, *(one for _, value in self.fields for one in value.buffers)))
        )

    def at(self, offset: str) -> Value:
        """The same pointer moved by ``offset`` elements."""
        if not self.buffers or offset == "0":
            return self
        return replace(self, shifted=True, offset=f"{self.offset} + {offset}" if self.offset else offset)

    def named(self, text: str) -> Value:
        return replace(self, text=text)


def union(values: Iterable[Value], text: str) -> Value:
    """A value that may be any of these."""
    known = [value for value in values if value.known]
    if not known:
        return Value(text)
    buffers = tuple(dict.fromkeys(memory for value in known for memory in value.buffers))
    descriptors = tuple(dict.fromkeys(memory for value in known for memory in value.descriptors))
    callees = tuple(c for value in known for c in (*value.callees, *([value.callee] if value.callee else [])))
    first = known[0]
    return replace(
        first,
        text=text,
        buffers=buffers,
        descriptors=descriptors,
        shifted=any(value.shifted for value in known),
        callee=callees[0] if len(callees) == 1 else None,
        callees=callees if len(callees) > 1 else (),
    )


@dataclass(eq=False)
class Frame:
    """One activation of a function on the walked path. ``this`` is the object of a method call;
    ``parameters`` are what the callers passed, by declaration; ``references`` are the variables behind
    reference parameters."""

    number: int
    function: str
    parent: Frame | None = None
    this: Slot | None = None
    call_lines: tuple[int, ...] = ()
    parameters: dict[str, Value] = field(default_factory=dict)
    references: dict[str, Slot] = field(default_factory=dict)
    declared: set[str] = field(default_factory=set)
    returned: list[Value] = field(default_factory=list)
    instance: bool = False

    @property
    def depth(self) -> int:
        return len(self.call_lines)


#: The field name under which a lambda's captured pointers are listed; what it does with them is not followed.
CAPTURED = "<captured>"


@dataclass(frozen=True, eq=False)
class Event:
    """Something that happened on the host's path, in program order.

    ``kind``: launch, edge, copy, fill, time, record, upload, download. ``node`` is the name in dependencies.
    ``whole`` writes replace what was in a buffer; ``loops`` are the numbers of the surrounding loops.
    """

    kind: str
    node: str
    line: int
    reads: tuple[Memory, ...] = ()
    writes: tuple[Memory, ...] = ()
    whole: bool = True
    conditional: bool = False
    group: int | None = None
    loops: tuple[int, ...] = ()
    detail: str = ""
    file: str = ""
    root: str = ""
