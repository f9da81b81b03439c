"""Nodes of the tree to places in the file: functions, communication calls, launches and the statements
around them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from cuco.source.analyze import is_device, is_kernel, launch_bounds
from cuco.source.clang_ast import LOOPS, Node, render
from cuco.source.nccl_calls import COMMUNICATION, LAUNCHES

CONFIGURATIONS = ("__cudaPushCallConfiguration", "cudaConfigureCall")


class Span(NamedTuple):
    """Bytes [start, end) of a source."""

    start: int
    end: int

    def covers(self, other: tuple[int, int]) -> bool:
        return self.start <= other[0] and other[1] <= self.end


@dataclass(frozen=True)
class Argument:
    """An expression as written, and where; ``span`` is empty where a macro made it up."""

    text: str
    span: Span
    type: str


@dataclass(frozen=True)
class ParameterSpan:
    """A parameter of a function: its declaration as written is ``text``."""

    name: str
    type: str
    text: str
    span: Span


@dataclass(frozen=True)
class FunctionSpan:
    """A function definition.

    ``span`` has everything from ``template`` or ``extern "C"`` to the closing brace, ``body`` the braces and
    what is between, ``signature`` what stands before the body, ``comment`` where the comment lines above
    begin.
    """

    name: str
    file: str
    line: int
    span: Span
    body: Span
    signature: Span
    name_span: Span
    parameters: tuple[ParameterSpan, ...]
    result: str
    kernel: bool
    device: bool
    template: bool
    launch_bounds: tuple[str, ...]
    comment: int


@dataclass(frozen=True)
class CallSpan:
    """A call of NCCL (a collective, a send, a group start or end), as it stands.

    ``op`` is without the nccl prefix, aliases resolved. ``call`` is the call expression itself (empty where
    a macro made it up), ``statement`` the innermost statement with its semicolon and any macro around the
    call; ``enclosing`` the statements around that, from the inside out, up to the function's own.
    ``variable`` is what takes the result.
    """

    name: str
    op: str
    file: str
    line: int
    function: str
    call: Span
    statement: Span
    enclosing: tuple[Span, ...]
    arguments: tuple[Argument, ...]
    macro: str | None
    loop: bool
    variable: str | None
    declares: bool


@dataclass(frozen=True)
class LaunchSpan:
    """A kernel launch as it stands; ``configuration`` are grid, block, shared bytes and stream as far as
    given."""

    kernel: str
    file: str
    line: int
    function: str
    call: Span
    statement: Span
    enclosing: tuple[Span, ...]
    configuration: tuple[Argument, ...]
    arguments: tuple[Argument, ...]
    via: str
    macro: str | None
    loop: bool
    callee: Span


def whole(function: Node) -> tuple[int, int]:
    """A definition with an ``extern "C"`` that stands before it alone."""
    start, end = function.expansion
    parent = function.parent
    if (
        parent is not None
        and parent.kind in ("LINKAGE_SPEC", "UNEXPOSED_DECL")
        and parent.expansion[1] == end
    ):
        start = parent.expansion[0]
    return start, end


def function_span(node: Node) -> FunctionSpan:
    body = node.body
    assert body is not None
    extent = Span(*whole(node))
    parameters = tuple(
        ParameterSpan(one.spelling, one.type, one.text, Span(*one.span)) for one in node.parameters
    )
    _, line, at = node.name_place
    return FunctionSpan(
        name=node.spelling,
        file=node.file,
        line=line,
        span=extent,
        body=Span(*body.expansion),
        signature=Span(extent.start, body.expansion[0]),
        name_span=Span(at, at + len(node.spelling.encode())),
        parameters=parameters,
        result=str(node.cursor.result_type.spelling),
        kernel=is_kernel(node),
        device=is_device(node),
        template=node.kind == "FUNCTION_TEMPLATE",
        launch_bounds=launch_bounds(node),
        comment=_comment_start(node, extent.start),
    )


def _comment_start(node: Node, start: int) -> int:
    """The beginning of the lines of comment right above a definition."""
    data = node.unit.bytes_of(node.file)
    at = data.rfind(b"\n", 0, start) + 1
    while at > 0:
        above = data.rfind(b"\n", 0, at - 1) + 1
        line = data[above : at - 1].strip()
        if not line.startswith((b"//", b"/*", b"*")) or b"EVOLVE-BLOCK" in line:
            break
        at = above
    return at


def callee_name(call: Node) -> str:
    """The name that is called; inside a template clang may only list the candidates."""
    if call.spelling:
        return call.spelling
    first = call.expressions[0] if call.expressions else None
    for part in first.walk() if first is not None else ():
        if part.kind == "OVERLOADED_DECL_REF":
            return part.spelling
    return ""


def _statements(node: Node) -> list[Node]:
    """The statements around an expression, from the inside out, without blocks and the function's body."""
    found: list[Node] = []
    child, parent = node, node.parent
    while parent is not None and not (
        child.kind == "COMPOUND_STMT" and parent.kind not in LOOPS and not parent.kind.endswith("STMT")
    ):
        if parent.kind == "COMPOUND_STMT" or (parent.kind in (*LOOPS, "IF_STMT") and _is_body(parent, child)):
            if child.kind != "COMPOUND_STMT":
                found.append(child)
        if parent.kind == "LAMBDA_EXPR":
            break
        child, parent = parent, parent.parent
    return found or [node]


def _is_body(owner: Node, child: Node) -> bool:
    """Whether a child of a loop or an if is what it governs, not its condition."""
    if owner.kind == "DO_STMT":
        return child is owner.children[0]
    if owner.kind == "IF_STMT":
        return child in owner.children[1:] and not (len(owner.children) > 1 and child is owner.children[0])
    return child is owner.children[-1]


def _with_semicolon(node: Node, span: tuple[int, int]) -> Span:
    """A statement with the semicolon behind it."""
    data = node.unit.bytes_of(node.file)
    end = span[1]
    if data[end - 1 : end] in (b";", b"}"):
        return Span(*span)
    while end < len(data) and data[end : end + 1].isspace():
        end += 1
    return Span(span[0], end + 1) if data[end : end + 1] == b";" else Span(*span)


def _outer(node: Node) -> tuple[Span, tuple[Span, ...], str | None]:
    """The statement of a call, those around it, and the macro that wraps the call."""
    statements: list[Span] = []
    for one in _statements(node):
        span = _with_semicolon(one, one.expansion)
        if not statements or (span != statements[-1] and span.covers(statements[-1])):
            statements.append(span)
    macro = None
    for name, start, end in node.unit.macros(node.file):
        if start <= node.expansion[0] < end and statements[0].covers((start, end)):
            macro = name
            break
    return statements[0], tuple(statements[1:]), macro


def _argument(node: Node, call: Node | None = None) -> Argument:
    made_up = call is not None and node.span == call.span
    return Argument(render(node) if made_up else node.text, Span(*node.span), node.type)


def _in_loop(node: Node) -> bool:
    parent = node.parent
    while parent is not None:
        if parent.kind in LOOPS and not (
            parent.kind == "DO_STMT" and parent.children[-1].strip().constant == 0
        ):
            return True
        parent = parent.parent
    return False


def _result(node: Node) -> tuple[str | None, bool]:
    """The variable that takes a call's result, and whether the same statement declares it."""
    parent = node.parent
    while parent is not None and parent.kind.endswith("EXPR"):
        parent = parent.parent
    if parent is None or parent.span[0] == parent.span[1] or parent.span == node.span:
        return None, False
    if parent.kind == "VAR_DECL" and parent.span[0] < node.span[0]:
        return parent.spelling, True
    if parent.kind == "BINARY_OPERATOR" and parent.operator == "=":
        return parent.expressions[0].text, False
    return None, False


def communication_call(node: Node, name: str, function: Node) -> CallSpan:
    shape = COMMUNICATION.get(name) or COMMUNICATION.get(name.removesuffix("Config"))
    statement, enclosing, macro = _outer(node)
    variable, declares = _result(node)
    if macro is not None and declares:  # the check macro's own variable
        variable, declares = None, False
    return CallSpan(
        name=name,
        op=shape.op if shape else name.removeprefix("nccl"),
        file=node.file,
        line=node.line,
        function=function.spelling,
        call=Span(*node.span),
        statement=statement,
        enclosing=enclosing,
        arguments=tuple(_argument(one, node) for one in node.arguments),
        macro=macro,
        loop=_in_loop(node),
        variable=variable,
        declares=declares,
    )


def bracket_launch(node: Node, configuration: Node, function: Node) -> LaunchSpan:
    statement, enclosing, macro = _outer(node)
    config = [one for one in configuration.arguments if one.span != (0, 0)]
    arguments = [one for one in node.arguments if one.spelling not in CONFIGURATIONS]
    callee = node.expressions[0]
    return LaunchSpan(
        kernel=callee.strip().spelling or node.spelling,
        file=node.file,
        line=node.line,
        function=function.spelling,
        call=Span(*node.span),
        statement=statement,
        enclosing=enclosing,
        configuration=tuple(_argument(one, configuration) for one in config),
        arguments=tuple(_argument(one, node) for one in arguments),
        via="<<<>>>",
        macro=macro,
        loop=_in_loop(node),
        callee=Span(*callee.span),
    )


def api_launch(node: Node, name: str, function: Node) -> LaunchSpan:
    statement, enclosing, macro = _outer(node)
    given = node.arguments
    callee = given[LAUNCHES[name]]
    extended = name.startswith("cudaLaunchKernelEx")
    config = given[:1] if extended else [given[at] for at in (1, 2, 4, 5) if at < len(given)]
    arguments = given[2:] if extended else given[3:4]
    return LaunchSpan(
        kernel=_pointed(callee),
        file=node.file,
        line=node.line,
        function=function.spelling,
        call=Span(*node.span),
        statement=statement,
        enclosing=enclosing,
        configuration=tuple(_argument(one) for one in config),
        arguments=tuple(_argument(one) for one in arguments),
        via=name,
        macro=macro,
        loop=_in_loop(node),
        callee=Span(*callee.span),
    )


def _pointed(node: Node) -> str:
    for part in node.walk():
        if part.kind == "DECL_REF_EXPR":
            return part.spelling
    return node.text
