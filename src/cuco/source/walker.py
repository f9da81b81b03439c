"""Walks host code in program order, from every entry point through its helpers, and records what happens on
the way.

Helpers, methods, lambdas and template instantiations are entered with what the caller passed, so an NCCL
call inside a helper appears once per call path, with the caller's buffers. Branches are all taken; loops are
walked once.
"""

from __future__ import annotations

from cuco.source.clang_ast import FUNCTIONS, LOOPS, Node
from cuco.source.effects import Effects
from cuco.source.expressions import leads_to_data
from cuco.source.nccl_calls import strip_profiling
from cuco.source.values import Callee, Frame, Slot, Value

_MAX_DEPTH = 24
_MAX_CALLS = 4000
_FORWARDING = frozenset(
    {
        "forward",
        "move",
        "raw_pointer_cast",
        "as_const",
        "addressof",
        "ref",
        "cref",
        "launder",
        "release",
        "static_pointer_cast",
    }
)
_VIEWS = frozenset({"data", "begin", "get", "c_str"})


class Walker(Effects):
    """One walk over one translation unit."""

    def enter(self, function: Node) -> None:
        """Walk an entry point with its parameters standing for themselves."""
        self.root = self.function_name = function.spelling
        frame = Frame(self._next_frame(), function.spelling)
        frame.declared.update(parameter.key for parameter in function.parameters)
        self.stack.append(frame)
        self._run(function)
        self.stack.pop()

    def _next_frame(self) -> int:
        self.frames += 1
        return self.frames

    def _run(self, function: Node) -> None:
        self.entered.add(function.place)
        self._initialise_members(function)
        body = function.body
        if body is not None:
            self.visit(body)

    def _initialise_members(self, function: Node) -> None:
        """The initialiser list of a constructor: pairs of a field and its value."""
        if function.kind != "CONSTRUCTOR" or self.frame.this is None:
            return
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
                this = self.frame.this
                value = self.eval(child)
                self.assign(Slot(f"{this.key}.{field.spelling}", f"{this.text}.{field.spelling}"), value)
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
        for child in kids:
            self.visit(child) if child.kind != "VAR_DECL" else self._declare(child)
        self.loops.pop()

    def _branch(self, node: Node) -> None:
        kids = node.children
        conditions = [
            child for child in kids if not child.kind.endswith("_STMT") or child.kind == "DECL_STMT"
        ]
        for child in conditions[:2]:
            self._declare(child) if child.kind == "VAR_DECL" else self.visit(child)
        self._conditionally([child for child in kids if child not in conditions[:2]])

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
            self.assign(slot, Value(slot.text if not node.type.endswith("dim3") else self.text(node)))
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

    # ---- calls -----------------------------------------------------------------------------------

    def _call(self, node: Node) -> Value:
        configuration = next(
            (
                child
                for child in node.children
                if child.kind == "CALL_EXPR"
                and child.spelling in ("__cudaPushCallConfiguration", "cudaConfigureCall")
            ),
            None,
        )
        if configuration is not None:
            return self.launch(node, configuration)
        if node.spelling in ("operator[]", "at") and len(node.expressions) > 1:
            slot = self.slot(node)
            self.eval(node.expressions[-1])
            return self.load(slot, node) if slot else Value(node.text)
        if node.spelling == "operator=" and len(node.arguments) == 2:
            return self._object_assignment(node)
        callees = self._callees(node)
        declared = callees[0].node if callees else node.referenced
        if declared is not None and declared.kind == "CONSTRUCTOR":
            return self._temporary(node)
        name = callees[0].name if callees else node.spelling
        if (
            declared is not None
            and declared.kind != "LAMBDA_EXPR"
            and declared.definition is None
            or not callees
        ):
            known = self.api_call(name, node)
            if known is not None:
                return known
        arguments = [self.eval(argument) for argument in self._given(node)]
        special = self._special(name, node, declared, arguments)
        if special is not None:
            return special
        results = [self._enter_callee(one, node, arguments) for one in callees]
        known_results = [value for value in results if value.known]
        return known_results[0].named(self.text(node)) if known_results else Value(self.text(node))

    def _given(self, node: Node) -> list[Node]:
        """Arguments of a call; of a call operator without the object that is called."""
        given = node.arguments
        return given[1:] if node.spelling == "operator()" and given else given

    def _object_assignment(self, node: Node) -> Value:
        target, source = node.arguments
        value, slot = self.eval(source), self.slot(target)
        if slot is not None:
            self.assign(slot, value if value.known else Value(slot.text), weak=bool(self.conditions))
        return value

    def _temporary(self, node: Node) -> Value:
        """A constructor used as an expression: conversions pass their only argument through."""
        arguments = [self.eval(argument) for argument in node.arguments if argument.span != (0, 0)]
        if len(arguments) == 1:
            return arguments[0]
        if any(value.callee for value in arguments):
            self._call_through(arguments, node)
        return Value(self.text(node))

    def _callees(self, node: Node) -> list[Callee]:
        """What a call may call."""
        declared = node.referenced
        if node.spelling == "operator()" and node.arguments:
            held = self.eval(node.arguments[0])
            found = [held.callee] if held.callee else list(held.callees)
            if (
                declared is not None
                and declared.definition is not None
                and declared.definition.file in self.own_files
            ):
                return [Callee(declared, "operator()")]
            return [one for one in found if one is not None]
        if declared is not None and declared.kind in FUNCTIONS:
            return [Callee(declared, declared.spelling)]
        if not node.expressions or (declared is not None and declared.kind == "CONSTRUCTOR"):
            return []
        held = self.eval(node.expressions[0])
        return [held.callee] if held.callee else list(held.callees)

    def _special(self, name: str, node: Node, declared: Node | None, arguments: list[Value]) -> Value | None:
        """Library calls that pass values through, hold functions, or find a workload buffer by its name."""
        if name in _FORWARDING and arguments:
            return arguments[0]
        if name in _VIEWS and node.expressions and not arguments:
            owner = node.expressions[0].strip()
            if owner.kind == "MEMBER_REF_EXPR" and owner.expressions:
                return self.eval(owner.expressions[0]).named(self.text(owner.expressions[0]))
        if name == "swap" and len(arguments) == 2:
            self._swap(node, arguments)
            return Value("")
        if declared is not None:
            found = self.lookup_by_name(node, declared, arguments)
            if found is not None:
                return found
        if declared is not None and declared.kind == "LAMBDA_EXPR":
            return None
        body = declared.definition if declared is not None else None
        if body is None and declared is not None and self._known(strip_profiling(name)):
            return None
        if body is None or body.file not in self.own_files:
            self._call_through(arguments, node)
            return Value(self.text(node))
        return None

    def _swap(self, node: Node, arguments: list[Value]) -> None:
        slots = [self.slot(argument) for argument in node.arguments]
        if slots[0] is None or slots[1] is None:
            return
        for slot, value in zip(slots, reversed(arguments), strict=True):
            assert slot is not None
            self.assign(slot, value, weak=bool(self.loops or self.conditions))

    def _call_through(self, arguments: list[Value], node: Node) -> None:
        """A function given to a library (a thread, a callback, an algorithm) is taken to be called once,
        there."""
        for position, value in enumerate(arguments):
            for one in [value.callee] if value.callee else value.callees:
                if (
                    one is not None
                    and one.node.kind == "LAMBDA_EXPR"
                    or one is not None
                    and one.node.definition
                ):
                    self._enter_callee(one, node, arguments[position + 1 :])

    def _enter_callee(self, callee: Callee, node: Node, arguments: list[Value]) -> Value:
        if callee.node.kind == "LAMBDA_EXPR":
            return self._inline(callee.node, arguments, node)
        body = callee.node.definition
        if body is None:
            known = self.api_values(callee.name, node, arguments)
            return known if known is not None else Value(node.text)
        if body.file not in self.own_files:
            return Value(node.text)
        this: Slot | None = None
        if body.kind == "CXX_METHOD" and node.expressions and callee.name != "operator()":
            owner = node.expressions[0].strip()
            if owner.kind == "MEMBER_REF_EXPR" and owner.expressions:
                this = self._object(owner.expressions[0])
            else:
                this = self.frame.this
        return self._inline(body, arguments, node, this=this)

    def _object(self, node: Node) -> Slot | None:
        """The object that a method is called on."""
        if node.is_pointer:
            target = self.eval(node).target
            if target is not None:
                return target
            found = self.slot(node)
            return Slot(f"{found.key}*", found.text, True) if found else None
        return self.slot(node)

    def _inline(self, function: Node, arguments: list[Value], call: Node, this: Slot | None = None) -> Value:
        active = sum(1 for frame in self.stack if frame.function == function.key)
        self.calls += 1
        if active > 1 or len(self.stack) > _MAX_DEPTH or self.calls > _MAX_CALLS:
            return Value(call.text)
        frame = Frame(
            self._next_frame(),
            function.key,
            self.frame,
            this or (self.frame.this if function.kind == "LAMBDA_EXPR" else None),
            (*self.frame.call_lines, call.line),
        )
        given = self._given(call)
        for position, parameter in enumerate(function.parameters):
            if position >= len(arguments):
                frame.declared.add(parameter.key)
                continue
            value = arguments[position]
            if not value.known and value.text in ("nullptr", "NULL", "0") and leads_to_data(parameter):
                frame.declared.add(parameter.key)
                continue
            frame.parameters[parameter.key] = value
            if parameter.type.endswith("&") and len(given) == len(arguments):
                target = self.slot(given[position])
                if target is not None:
                    frame.references[parameter.key] = target
        self.stack.append(frame)
        outer = self.function_name
        if function.kind != "LAMBDA_EXPR" and function.spelling != "operator()":
            self.function_name = function.spelling
        self._run(function)
        self.function_name = outer
        self.stack.pop()
        known = [value for value in frame.returned if value.known]
        return known[-1] if known else Value(call.text)
