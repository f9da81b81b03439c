"""Expressions of host code to values: variables, fields, pointers, functions, strings, cuco_buffer
descriptors."""

from __future__ import annotations

from dataclasses import replace

from cuco.source.clang_ast import Node
from cuco.source.values import Callee, Frame, Memory, Slot, Value, union


class Expressions:
    """State of variables along the walked path, and the meaning of expressions in it.

    ``store`` maps slots to values. Fields behind pointers are told apart by type and field, not by object:
    what cuco_prepare puts into a state is found again by cuco_launch.
    """

    def __init__(self, buffer_names: list[str]) -> None:
        self.store: dict[str, Value] = {}
        self.memories: list[Memory] = []
        self.stack: list[Frame] = []
        self.buffer_names = buffer_names
        self._named: dict[str, Memory] = {}
        self._cuco: dict[str, Memory] = {}

    # ---- places ----------------------------------------------------------------------------------

    @property
    def frame(self) -> Frame:
        return self.stack[-1]

    def slot(self, node: Node) -> Slot | None:
        """The variable, field or element that an expression names; None for a temporary."""
        node = node.strip()
        if node.kind == "DECL_REF_EXPR":
            return self._variable(node)
        if node.kind == "MEMBER_REF_EXPR":
            return self._field(node)
        kids = node.expressions
        if node.kind == "ARRAY_SUBSCRIPT_EXPR" and len(kids) == 2:
            return self._element(kids[0], node)
        if node.kind == "UNARY_OPERATOR" and node.operator == "*" and kids:
            return self._behind(kids[0], node)
        if node.kind == "CALL_EXPR" and node.spelling in ("operator[]", "at", "operator*", "back", "front"):
            owner = kids[0].strip()
            if owner.kind == "MEMBER_REF_EXPR" and owner.spelling == node.spelling and owner.expressions:
                owner = owner.expressions[0]
            return self._element(owner, node)
        if node.kind == "CXX_THIS_EXPR":
            return self.frame.this
        return None

    def _variable(self, node: Node) -> Slot | None:
        declared = node.referenced
        if declared is None or declared.kind not in ("VAR_DECL", "PARM_DECL", "FIELD_DECL"):
            return None
        for frame in reversed(self.stack):
            if declared.key in frame.references:
                return frame.references[declared.key]
            if declared.key in frame.declared:
                return Slot(f"{frame.number}#{declared.key}", node.spelling, declared.is_pointer)
        return Slot(f"0#{declared.key}", node.spelling, declared.is_pointer)

    def _field(self, node: Node) -> Slot | None:
        name, kids = node.member_name, node.expressions
        if not kids:
            this = self.frame.this
            if this is None:
                return Slot(f"field:{self._record(node)}.{name}", name, node.is_pointer)
            return Slot(
                f"{this.key}.{name}", f"{this.text}{'->' if this.pointer else '.'}{name}", node.is_pointer
            )
        base = kids[0]
        if base.is_pointer or base.strip().type.endswith("*"):
            target = self.eval(base).target
            if target is not None:
                return Slot(f"{target.key}.{name}", f"{target.text}.{name}", node.is_pointer)
            return Slot(f"field:{self._record(node)}.{name}", f"{self.text(base)}->{name}", node.is_pointer)
        owner = self.slot(base)
        if owner is None or owner.key.endswith("[]"):
            return Slot(f"field:{self._record(node)}.{name}", f"{self.text(base)}.{name}", node.is_pointer)
        return Slot(f"{owner.key}.{name}", f"{owner.text}.{name}", node.is_pointer)

    @staticmethod
    def _record(node: Node) -> str:
        declared = node.referenced
        parent = declared.cursor.semantic_parent if declared is not None else None
        return str(parent.spelling) if parent is not None else ""

    def _element(self, owner: Node, node: Node) -> Slot | None:
        base = self.slot(owner)
        if base is None:
            pointed = self.eval(owner)
            base = pointed.target
        if base is None:
            return None
        return Slot(f"{base.key}[]", base.text if leads_to_data(node) else self.text(node), node.is_pointer)

    def _behind(self, pointer: Node, node: Node) -> Slot | None:
        target = self.eval(pointer).target
        if target is not None:
            return target
        base = self.slot(pointer)
        return Slot(f"{base.key}*", base.text, node.is_pointer) if base else None

    # ---- values ----------------------------------------------------------------------------------

    def load(self, slot: Slot, node: Node) -> Value:
        """What a variable holds; a data pointer nobody set is memory of its own name."""
        if slot.key in self.store:
            return self.store[slot.key]
        declared = node.referenced if node.kind in ("DECL_REF_EXPR", "MEMBER_REF_EXPR") else None
        if declared is not None:
            for frame in reversed(self.stack):
                if declared.key in frame.parameters:
                    return frame.parameters[declared.key]
            initial = self._initial(declared)
            if initial is not None:
                self.store[slot.key] = initial
                return initial
        if leads_to_data(node):
            memory = self._named.get(slot.key)
            if memory is None:
                allocator = "param" if declared is not None and declared.kind == "PARM_DECL" else "unknown"
                memory = self.new_memory(slot.text, allocator, line=declared.line if declared else node.line)
                self._named[slot.key] = memory
            return Value(slot.text, (memory,))
        return Value(slot.text)

    def _initial(self, declared: Node) -> Value | None:
        """The initialiser of a global, a static or a field with a default."""
        if declared.kind not in ("VAR_DECL", "FIELD_DECL"):
            return None
        if declared.kind == "VAR_DECL" and any(declared.key in frame.declared for frame in self.stack):
            return None
        kids = [
            child for child in declared.expressions if child.kind.endswith(("EXPR", "LITERAL", "OPERATOR"))
        ]
        if not kids or declared.unit.main == "":
            return None
        value = self.eval(kids[-1])
        return value if value.known else None

    def new_memory(
        self, name: str, allocator: str, *, size: str | None = None, line: int | None = None, depth: int = 0
    ) -> Memory:
        memory = Memory(name, allocator, size, line, depth=depth)
        self.memories.append(memory)
        return memory

    def eval(self, node: Node) -> Value:
        """The value of an expression; overridden by the walker for expressions with effects."""
        inner = node.strip()
        kind, kids = inner.kind, inner.expressions
        if kind == "DECL_REF_EXPR":
            return self._reference(inner)
        if kind == "STRING_LITERAL":
            return Value(inner.text, literal=inner.spelling.strip('"'))
        if kind == "LAMBDA_EXPR":
            return Value("lambda", callee=Callee(inner, "lambda"))
        if kind == "MEMBER_REF_EXPR":
            return self._member(inner)
        if kind == "ARRAY_SUBSCRIPT_EXPR" and len(kids) == 2:
            return self._subscript(inner, kids[0], kids[1])
        if kind == "UNARY_OPERATOR" and kids:
            return self._unary(inner, kids[0])
        if kind == "BINARY_OPERATOR" and inner.operator in ("+", "-") and len(kids) == 2:
            return self._shifted(inner, kids)
        if kind == "CONDITIONAL_OPERATOR" and len(kids) == 3:
            self.eval(kids[0])
            return union([self.eval(kids[1]), self.eval(kids[2])], self.text(inner))
        if kind == "INIT_LIST_EXPR":
            return Value(inner.text, items=tuple(self.eval(child) for child in kids))
        for child in kids:
            self.eval(child)
        return Value(self.text(inner))

    def _reference(self, node: Node) -> Value:
        declared = node.referenced
        if declared is not None and declared.kind in ("FUNCTION_DECL", "CXX_METHOD", "FUNCTION_TEMPLATE"):
            return Value(node.text, callee=Callee(declared, declared.spelling))
        if declared is not None and declared.kind == "ENUM_CONSTANT_DECL":
            return Value(node.text, constant=declared.spelling)
        slot = self.slot(node)
        return self.load(slot, node) if slot else Value(node.text)

    def _member(self, node: Node) -> Value:
        kids, name = node.expressions, node.member_name
        declared = node.referenced
        if declared is not None and declared.kind in ("CXX_METHOD", "FUNCTION_DECL", "FUNCTION_TEMPLATE"):
            return Value(self.text(node), callee=Callee(declared, declared.spelling))
        if kids:
            owner = self.eval(kids[0])
            if owner.descriptors:
                names = "|".join(memory.name for memory in owner.descriptors)
                return Value(names, owner.descriptors) if name == "ptr" else Value(f"{names}.{name}")
        slot = self.slot(node)
        return self.load(slot, node) if slot else Value(self.text(node))

    def _subscript(self, node: Node, base: Node, index: Node) -> Value:
        at = self.eval(index)
        owner = base.strip()
        if (
            owner.kind == "MEMBER_REF_EXPR"
            and owner.member_name == "buffers"
            and self._record(owner) == "cuco_ctx"
        ):
            return self._descriptor_at(node, index, at)
        held = self.eval(base)
        if held.items is not None:
            number = index.constant
            if number is not None and 0 <= number < len(held.items):
                return held.items[number]
            return union(held.items, self.text(node))
        slot = self.slot(node)
        if slot is not None and slot.key in self.store:
            return self.store[slot.key]
        if held.buffers and not leads_to_data(node):
            return Value(self.text(node), held.buffers, True, self.text(index))
        return self.load(slot, node) if slot else Value(self.text(node), held.buffers, True)

    def _descriptor_at(self, node: Node, index: Node, at: Value) -> Value:
        if at.descriptors:
            return Value(self.text(node), descriptors=at.descriptors)
        number = index.constant
        if number is not None and 0 <= number < len(self.buffer_names):
            return Value(self.text(node), descriptors=(self.cuco_buffer(self.buffer_names[number]),))
        memory = self.cuco_buffer(f"buffers[{number if number is not None else at.text}]")
        return Value(self.text(node), descriptors=(memory,))

    def cuco_buffer(self, name: str) -> Memory:
        """The workload buffer of this name, the same object every time."""
        if name not in self._cuco:
            self._cuco[name] = self.new_memory(name, "cuco", size=f"{name}.bytes")
        return self._cuco[name]

    def _unary(self, node: Node, inner: Node) -> Value:
        sign = node.operator
        if sign == "&":
            found = inner.strip()
            if found.kind == "ARRAY_SUBSCRIPT_EXPR":
                pair = found.expressions
                held = self.eval(pair[0])
                if held.buffers and not leads_to_data(found):
                    return held.at(self.text(pair[1])).named(self.text(node))
            value = self.eval(found)
            if value.callee or value.descriptors or value.literal is not None:
                return value
            slot = self.slot(found)
            if slot is not None and value.known:
                self.store.setdefault(slot.key, value)
            buffers = value.buffers if found.kind == "DECL_REF_EXPR" and not found.is_pointer else ()
            return Value(self.text(node), buffers, target=slot, window=value.window)
        value = self.eval(inner)
        if sign == "*":
            if value.callee or value.descriptors:
                return value
            slot = self.slot(node)
            if slot is not None:
                return self.load(slot, node)
        return replace(value, text=self.text(node)) if sign.endswith(("++", "--")) else Value(self.text(node))

    def _shifted(self, node: Node, kids: list[Node]) -> Value:
        left, right = self.eval(kids[0]), self.eval(kids[1])
        if left.buffers or left.target:
            return left.at(("-" if node.operator == "-" else "") + self.text(kids[1])).named(self.text(node))
        if right.buffers:
            return right.at(self.text(kids[0])).named(self.text(node))
        return Value(self.text(node))

    def assign(self, slot: Slot, value: Value, *, weak: bool = False) -> None:
        """Store a value; ``weak`` where the old one may remain (array elements, branches)."""
        depth = 0 if slot.key.startswith("field:") else self.frame.depth
        if (
            len(value.buffers) == 1
            and not value.shifted
            and not value.window
            and depth < value.buffers[0].depth
        ):
            value.buffers[0].name, value.buffers[0].depth = slot.text, depth
        old = self.store.get(slot.key)
        if weak and old is not None and old.known and value.known and old.buffers != value.buffers:
            value = union([old, value], value.text)
        self.store[slot.key] = value

    # ---- texts -----------------------------------------------------------------------------------

    def text(self, node: Node) -> str:
        """The expression as the reader of the entry function would write it: parameters replaced by
        arguments."""
        inner = node.strip()
        if inner.kind == "CALL_EXPR" and inner.spelling in ("forward", "move") and len(inner.arguments) == 1:
            return self.text(inner.arguments[0])
        if self.frame.depth == 0 and self.frame.this is None:
            return node.text
        start, end = node.span
        written = node.unit.slice(node.file, start, end)
        places: list[tuple[int, int, str]] = []
        for part in node.walk():
            if part.kind == "CXX_UNARY_EXPR" and self.frame.instance:
                new = str(part.constant) if part.constant is not None else None  # sizeof a template's type
            elif part.kind in ("DECL_REF_EXPR", "MEMBER_REF_EXPR"):
                new = self._replacement(part)
            else:
                continue
            if new is None or not (start <= part.span[0] < part.span[1] <= end):
                continue
            places.append((part.span[0] - start, part.span[1] - start, new))
        if not places or not written:
            return " ".join((written or node.text).split())
        whole = len(places) == 1 and places[0][:2] == (0, len(written.encode()))
        data = written.encode()
        for low, high, new in sorted(set(places), reverse=True):
            shown = (
                new
                if whole or new.replace("_", "").replace(".", "").replace("->", "").isalnum()
                else f"({new})"
            )
            data = data[:low] + shown.encode() + data[high:]
        return " ".join(data.decode("utf-8", "replace").split())

    def _replacement(self, part: Node) -> str | None:
        declared = part.referenced
        if declared is None:
            return None
        if part.kind == "MEMBER_REF_EXPR":
            this = self.frame.this
            if part.expressions or this is None or declared.kind != "FIELD_DECL":
                return None
            return f"{this.text}{'->' if this.pointer else '.'}{part.member_name}"
        for frame in reversed(self.stack):
            if declared.key in frame.references:
                return frame.references[declared.key].text
            if declared.key in frame.parameters and frame.depth > 0:
                return frame.parameters[declared.key].text
        return None


#: Handles of libraries, which point to nothing that a program computes on.
_HANDLES = frozenset(
    {
        "CUstream_st",
        "CUevent_st",
        "ncclComm",
        "ncclWindow_vidmem",
        "CUgraph_st",
        "CUgraphExec_st",
        "_IO_FILE",
        "cuco_ctx",
        "cuco_buffer",
        "cuco_param",
        "void (void *)",
    }
)


def leads_to_data(node: Node) -> bool:
    """Whether an expression's type is a pointer to data (not to a function, a handle or a text)."""
    kind = node.cursor.type.get_canonical()
    if kind.kind.name in ("LVALUEREFERENCE", "RVALUEREFERENCE"):
        kind = kind.get_pointee()
    pointer = False
    while kind.kind.name in ("POINTER", "CONSTANTARRAY", "INCOMPLETEARRAY"):
        is_pointer = kind.kind.name == "POINTER"
        pointer = pointer or is_pointer
        kind = (kind.get_pointee() if is_pointer else kind.element_type).get_canonical()
    if not pointer or kind.kind.name in ("FUNCTIONPROTO", "FUNCTIONNOPROTO"):
        return False
    name = str(kind.spelling)
    return name != "const char" and name.removeprefix("const ").removeprefix("struct ") not in _HANDLES
