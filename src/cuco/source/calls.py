"""Calls on the walked path: whose function it is, and entering it with what the caller passed."""

from __future__ import annotations

from cuco.source.clang_ast import FUNCTIONS, Node
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


class Calls(Effects):
    """Resolution of calls. Functions of the user are entered, library functions have their effects."""

    def _run(self, function: Node) -> None:
        """Walk a function's body in the current frame."""
        raise NotImplementedError

    def _next_frame(self) -> int:
        self.frames += 1
        return self.frames

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
        if not callees or (declared is not None and self._is_library(declared)):
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

    def _is_library(self, declared: Node) -> bool:
        """Whether a function is not the user's: declared only, or defined in a system header."""
        if declared.kind == "LAMBDA_EXPR":
            return False
        body = declared.definition
        return body is None or body.file not in self.own_files

    def _given(self, node: Node) -> list[Node]:
        """Arguments of a call; of a call operator without the object that is called."""
        given = node.arguments
        return given[1:] if node.spelling == "operator()" and given else given

    def _object_assignment(self, node: Node) -> Value:
        target, source = node.arguments
        value, slot = self.eval(source), self.slot(target)
        if slot is not None:
            size = target.canonical_type.endswith("dim3")
            plain = Value(self.text(source), node=source) if size else Value(slot.text)
            self.assign(slot, value if value.known else plain, weak=bool(self.conditions))
        return value

    def _temporary(self, node: Node) -> Value:
        """A constructor used as an expression: conversions pass their only argument through."""
        arguments = [self.eval(argument) for argument in node.arguments if argument.span != (0, 0)]
        if node.spelling == "dim3":
            inner = arguments[0] if len(arguments) == 1 else None
            return (
                inner if inner is not None and inner.node is not None else Value(self.text(node), node=node)
            )
        body = node.referenced.definition if node.referenced is not None else None
        if body is not None and body.file in self.own_files and body.parameters:
            return self._inline(body, arguments, node)  # its fields are told apart by the type
        if len(arguments) == 1:
            return arguments[0]
        if any(value.callee for value in arguments):
            self._call_through(arguments, node)
        return Value(self.text(node))

    def _made_by_library(self, node: Node, arguments: list[Value]) -> None:
        """``make_unique`` and ``make_shared``: the constructor that takes as many arguments is entered."""
        kind = node.cursor.type.get_canonical()
        if kind.get_num_template_arguments() < 1:
            return
        record = self.unit.node(kind.get_template_argument_type(0).get_declaration())
        for child in record.children if record is not None else []:
            if child.kind == "CONSTRUCTOR" and len(child.parameters) == len(arguments) and child.definition:
                if child.definition.file in self.own_files:
                    self._inline(child.definition, arguments, node)
                return

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
        if name in ("make_unique", "make_shared"):
            self._made_by_library(node, arguments)
            return Value(self.text(node))
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
        """The object that a method is called on; None for one whose fields are told apart by its type."""
        if node.strip().kind == "CXX_THIS_EXPR":
            return self.frame.this
        if node.strip().kind == "CALL_EXPR" and node.strip().spelling in ("operator->", "operator*", "get"):
            return None
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
        frame.instance = bool(function.cursor.get_num_template_arguments() > 0)
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
