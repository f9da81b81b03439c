"""Walks host code in program order, from every entry point through its helpers, and records what happens on
the way.

Helpers, methods, lambdas and template instantiations are entered with what the caller passed, so an NCCL
call inside a helper appears once per call path, with the caller's buffers. Branches are all taken; loops are
walked once.
"""

from __future__ import annotations

from cuco.source.calls import Calls
from cuco.source.clang_ast import LOOPS, Node
from cuco.source.expressions import leads_to_data
from cuco.source.trail import loop_head
from cuco.source.values import Frame, Memory, Slot, Value


class Walker(Calls):
    """One walk over one translation unit."""

    def enter(self, function: Node) -> None:
        """Walk an entry point with its parameters standing for themselves."""
        self.root = self.function_name = function.spelling
        frame = Frame(self._next_frame(), function.spelling)
        frame.declared.update(parameter.key for parameter in function.parameters)
        self.stack.append(frame)
        self._run(function)
        self.stack.pop()

    def _run(self, function: Node) -> None:
        self.entered.add(function.place)
        self._initialise_members(function)
        body = function.body
        if body is not None:
            self.visit(body)

    def _initialise_members(self, function: Node) -> None:
        """The initialiser list of a constructor: pairs of a field and its value."""
        if function.kind != "CONSTRUCTOR":
            return
        this = self.frame.this
        record = str(function.cursor.semantic_parent.spelling)
        field: Node | None = None
        for child in function.children:
            if child.kind == "MEMBER_REF":
                field = child
            elif field is not None and child.kind not in (
                "PARM_DECL",
                "COMPOUND_STMT",
                "TYPE_REF",
                "TEMPLATE_REF",
            ):
                value, name = self.eval(child), field.spelling
                slot = Slot(f"field:{record}.{name}", name)
                self.assign(Slot(f"{this.key}.{name}", f"{this.text}.{name}") if this else slot, value)
                field = None

    # ---- statements ------------------------------------------------------------------------------

    def visit(self, node: Node) -> None:
        """A statement and all its effects."""
        kind = node.kind
        if kind == "COMPOUND_STMT":
            self._block(node)
        elif kind in LOOPS:
            self._loop(node)
        elif kind == "IF_STMT":
            self._branch(node)
        elif kind == "SWITCH_STMT":
            self._conditionally(node.children)
        elif kind == "DECL_STMT":
            for child in node.children:
                if child.kind == "VAR_DECL":
                    self._declare(child)
        elif kind == "RETURN_STMT":
            for child in node.expressions:
                self.frame.returned.append(self.eval(child))
        elif kind.endswith(("EXPR", "OPERATOR", "LITERAL")):
            self.eval(node)
        else:
            for child in node.children:
                self.visit(child)

    def _block(self, node: Node) -> None:
        objects: list[tuple[Node, Slot]] = []
        for child in node.children:
            self.visit(child)
            if child.kind == "DECL_STMT":
                objects += [
                    (one, found)
                    for one in child.children
                    if one.kind == "VAR_DECL"
                    for found in [self._variable_slot(one)]
                ]
        for declared, slot in reversed(objects):
            destructor = self._destructor(declared)
            if destructor is not None:
                self._inline(destructor, [], node, this=slot)

    def _destructor(self, declared: Node) -> Node | None:
        record = self.unit.node(declared.cursor.type.get_canonical().get_declaration())
        if record is None or record.file not in self.own_files:
            return None
        for child in record.children:
            if child.kind == "DESTRUCTOR":
                return child.definition
        return None

    def _loop(self, node: Node) -> None:
        kids = node.children
        once = node.kind == "DO_STMT" and kids and kids[-1].strip().constant == 0
        if once:  # the do { } while (0) of a macro
            self.visit(kids[0])
            return
        self.loop_count += 1
        self.loops.append(self.loop_count)
        self.loop_heads.append(loop_head(self.text(node)))
        before = self._pointers()
        start, counts, groups = self.mark(), dict(self._counts), self._groups
        self._turn(kids)
        if any(before[key] != now for key, now in self._pointers().items() if key in before):
            middle, loops = self.mark(), self.loop_count
            self._turn(kids)  # pointers have changed hands: the next turn works on other buffers
            self.fold(start, middle)
            after = {
                key: counts.get(key, 0) + (self._counts[key] - counts.get(key, 0)) // 2
                for key in self._counts
            }
            self._counts, self.loop_count = after, loops
            self._groups = groups + (self._groups - groups) // 2
        self.loops.pop()
        self.loop_heads.pop()

    def _range(self, kids: list[Node]) -> None:
        """The variable of a range loop is an element of what is gone through."""
        declared = next((child for child in kids if child.kind == "VAR_DECL"), None)
        place = kids[kids.index(declared) + 1] if declared in kids and declared is not kids[-1] else None
        if declared is None or place is None or not leads_to_data(declared):
            return
        base = self.slot(place)
        element = self.store.get(f"{base.key}[]") if base is not None else None
        if element is not None:
            self.assign(self._variable_slot(declared), element)

    def _turn(self, kids: list[Node]) -> None:
        for child in kids:
            self.visit(child) if child.kind != "VAR_DECL" else self._declare(child)
            if child.kind == "VAR_DECL":
                self._range(kids)

    def _pointers(self) -> dict[str, tuple[Memory, ...]]:
        return {key: value.buffers for key, value in self.store.items() if value.buffers}

    def _branch(self, node: Node) -> None:
        kids = list(node.children)
        while len(kids) > 1 and kids[0].kind in ("DECL_STMT", "VAR_DECL"):
            first = kids.pop(0)
            self._declare(first) if first.kind == "VAR_DECL" else self.visit(first)
        if kids:
            self.visit(kids[0])
        self._conditionally(kids[1:])

    def _conditionally(self, nodes: list[Node]) -> None:
        self.conditions += 1
        for child in nodes:
            self.visit(child)
        self.conditions -= 1

    def _variable_slot(self, declared: Node) -> Slot:
        static = declared.cursor.storage_class.name == "STATIC"
        number = 0 if static else self.frame.number
        return Slot(f"{number}#{declared.key}", declared.spelling, declared.is_pointer)

    def _declare(self, declared: Node) -> None:
        if declared.cursor.storage_class.name != "STATIC":
            self.frame.declared.add(declared.key)
        slot = self._variable_slot(declared)
        self.store.pop(slot.key, None)
        initial = [
            child
            for child in declared.expressions
            if child.kind.endswith(("EXPR", "LITERAL", "OPERATOR", "STMT"))
        ]
        if not initial:
            return
        node = initial[-1]
        inner = node.strip()
        if declared.type.endswith("&"):
            target = self.slot(inner)
            if target is not None:
                self.frame.references[declared.key] = target
                self.frame.declared.discard(declared.key)
                self.eval(inner)
                return
        if (
            inner.kind == "CALL_EXPR"
            and inner.referenced is not None
            and inner.referenced.kind == "CONSTRUCTOR"
        ):
            self._construct(inner, slot)
            return
        if inner.kind == "INIT_LIST_EXPR" and self._aggregate(declared, inner, slot):
            return
        value = self.eval(node)
        if value.known or not leads_to_data(declared):
            self.assign(slot, value if value.known else self._plain(declared, inner, value))

    def _plain(self, declared: Node, inner: Node, value: Value) -> Value:
        """A handle copied from another variable is called what that one is called; a number keeps its own
        name."""
        handle = declared.is_pointer and inner.kind in (
            "DECL_REF_EXPR",
            "MEMBER_REF_EXPR",
            "ARRAY_SUBSCRIPT_EXPR",
        )
        return value if handle or declared.canonical_type.endswith("dim3") else Value(declared.spelling)

    def _aggregate(self, declared: Node, listed: Node, slot: Slot) -> bool:
        record = self.unit.node(declared.cursor.type.get_canonical().get_declaration())
        if record is None or record.kind not in ("STRUCT_DECL", "CLASS_DECL"):
            return False
        fields = [child for child in record.children if child.kind == "FIELD_DECL"]
        for field, child in zip(fields, listed.expressions, strict=False):
            self.assign(
                Slot(f"{slot.key}.{field.spelling}", f"{slot.text}.{field.spelling}"), self.eval(child)
            )
        return True

    # ---- expressions with effects ----------------------------------------------------------------

    def eval(self, node: Node) -> Value:
        inner = node.strip()
        if inner.kind == "CALL_EXPR":
            return self._call(inner)
        if inner.kind == "BINARY_OPERATOR" and inner.operator == "=":
            return self._assignment(inner)
        if inner.kind == "BINARY_OPERATOR" and inner.operator == ",":
            values = [self.eval(child) for child in inner.expressions]
            return values[-1]
        if inner.kind == "COMPOUND_ASSIGNMENT_OPERATOR":
            return self._advance(inner)
        if inner.kind == "BINARY_OPERATOR" and inner.operator in ("&&", "||"):
            left, right = inner.expressions
            self.eval(left)
            self._conditionally([right])
            return Value(inner.text)
        if inner.kind in ("CXX_NEW_EXPR", "CXX_DELETE_EXPR"):
            return self._new(inner)
        if inner.kind in ("COMPOUND_STMT", "StmtExpr"):
            self.visit(inner)
            return Value("")
        return super().eval(inner)

    def _assignment(self, node: Node) -> Value:
        target, source = node.expressions
        value = self.eval(source)
        slot = self.slot(target)
        self.eval(target.strip().expressions[-1]) if target.strip().kind == "ARRAY_SUBSCRIPT_EXPR" else None
        if slot is not None and (value.known or not leads_to_data(target)):
            plain = value if value.known else Value(slot.text)
            if (
                not value.known
                and target.is_pointer
                and source.strip().kind in ("DECL_REF_EXPR", "MEMBER_REF_EXPR")
            ):
                plain = value
            self.assign(slot, plain, weak=bool(self.conditions) or slot.key.endswith("[]"))
        return value

    def _advance(self, node: Node) -> Value:
        target, step = node.expressions
        value = self.eval(target)
        self.eval(step)
        slot = self.slot(target)
        if slot is not None and value.buffers and not value.descriptors:
            self.store[slot.key] = value.at(self.text(step))
        return value

    def _new(self, node: Node) -> Value:
        for child in node.expressions:
            self.visit(child)
        return Value(node.text)

    def _construct(self, node: Node, slot: Slot) -> Value:
        """A constructor call that makes the object in ``slot``."""
        constructor = node.referenced
        arguments = [self.eval(argument) for argument in node.arguments]
        body = constructor.definition if constructor is not None else None
        if body is not None and body.file in self.own_files:
            self._inline(body, arguments, node, this=slot)
        elif arguments and arguments[0].known and len(arguments) == 1:
            self.assign(slot, arguments[0])
        elif any(value.callee for value in arguments):
            self._call_through(arguments, node)
        if not arguments or not arguments[0].known:
            size = node.type.endswith("dim3")
            self.assign(slot, Value(self.text(node), node=node) if size else Value(slot.text))
        if node.spelling == "device_vector":
            self.assign(
                slot,
                Value(
                    slot.text,
                    (
                        self.new_memory(
                            slot.text,
                            "thrust::device_vector",
                            size=arguments[0].text if arguments else None,
                            line=node.line,
                        ),
                    ),
                ),
            )
        return Value(slot.text)
