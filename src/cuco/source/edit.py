"""Where things stand in a source, and edits by byte range: the toolkit for transforming user code.

Positions are byte offsets into the UTF-8 text. Nothing is re-printed: what an edit does not touch stays as
it is.

    >>> source = SourceFile.read("host.cu")                               # doctest: +SKIP
    >>> launch = source.function("cuco_launch")
    >>> gather = source.calls(op="AllGather")[0]
    >>> gather.arguments[0].text, gather.macro, gather.statement          # 'c->ptr', 'NCCLCHECK', Span(812,
    901) >>> new = apply(source.text, [
    ...     Edit.replace(gather.statement, "exchange(s, stream);"),
    ...     Edit.insert(source.after_includes, '#include "nccl_device.h"\\n'),
    ...     Edit.insert(source.before(launch), "struct Exchange { int epoch; };\\n"),
    ...     Edit.insert(launch.body.start + 1, "  State *s = (State *)state;\\n"),
    ... ])

An edge or launch of the CommGraph leads to its place with ``source.call_at(edge.file, edge.offset)``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from cuco.errors import UsageError
from cuco.source.analyze import is_device, is_kernel, launch_bounds, own_functions
from cuco.source.clang_ast import LOOPS, Node, render
from cuco.source.nccl_calls import COMMUNICATION, LAUNCHES, strip_profiling
from cuco.source.reading import Headers, Reading, read

_CONFIGURATIONS = ("__cudaPushCallConfiguration", "cudaConfigureCall")


class Span(NamedTuple):
    """Bytes [start, end) of a source."""

    start: int
    end: int

    def covers(self, other: tuple[int, int]) -> bool:
        return self.start <= other[0] and other[1] <= self.end


@dataclass(frozen=True)
class Edit:
    """Replace the bytes [start, end) by ``text``; an insertion has start == end."""

    start: int
    end: int
    text: str

    @staticmethod
    def replace(span: tuple[int, int], text: str) -> Edit:
        return Edit(span[0], span[1], text)

    @staticmethod
    def insert(at: int, text: str) -> Edit:
        return Edit(at, at, text)

    @staticmethod
    def delete(span: tuple[int, int]) -> Edit:
        return Edit(span[0], span[1], "")


def apply(text: str, edits: Iterable[Edit]) -> str:
    """The text with all edits made at once. Insertions at one place keep their order; overlaps are a
    ValueError."""
    data = text.encode("utf-8")
    ordered = sorted(enumerate(edits), key=lambda pair: (pair[1].start, pair[1].end, pair[0]))
    pieces: list[bytes] = []
    at = 0
    for _, edit in ordered:
        if not 0 <= edit.start <= edit.end <= len(data):
            raise ValueError(f"edit outside the text: {edit.start}..{edit.end} of {len(data)} bytes")
        if edit.start < at:
            raise ValueError(f"edits overlap at byte {edit.start}")
        pieces += [data[at : edit.start], edit.text.encode("utf-8")]
        at = edit.end
    pieces.append(data[at:])
    return b"".join(pieces).decode("utf-8")


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


@dataclass
class SourceFile:
    """A source with the places of its functions, calls and launches. Made by ``read`` or ``of``."""

    reading: Reading
    functions: list[FunctionSpan] = field(default_factory=list)
    all_calls: list[CallSpan] = field(default_factory=list)
    launches: list[LaunchSpan] = field(default_factory=list)

    @staticmethod
    def read(
        path: str | Path,
        include_dirs: Sequence[str | Path] | None = None,
        *,
        text: str | None = None,
        defines: Sequence[str] = (),
    ) -> SourceFile:
        """Parse a file (or ``text`` in its place). Errors are those of ``analyze``."""
        headers = None if include_dirs is None else Headers(tuple(Path(one) for one in include_dirs))
        return SourceFile.of(read(path, headers, text=text, defines=defines))

    @staticmethod
    def of(reading: Reading) -> SourceFile:
        source = SourceFile(reading)
        for node in own_functions(reading):
            source.functions.append(_function(node))
            source._collect(node)
        return source

    @property
    def path(self) -> Path:
        return self.reading.path

    @property
    def text(self) -> str:
        return self.reading.text

    @property
    def main(self) -> str:
        """The file's name as spans carry it in ``file``."""
        return self.reading.unit.main

    def slice(self, span: tuple[int, int], file: str | None = None) -> str:
        """The text of a range, of the main file if no other is named."""
        return self.reading.unit.slice(file or self.main, span[0], span[1])

    def function(self, name: str) -> FunctionSpan:
        """The function of this name; UsageError where the source has none."""
        for one in self.functions:
            if one.name == name:
                return one
        raise UsageError(
            f"{self.path} defines no function {name}",
            fix="A candidate defines cuco_prepare, cuco_launch and cuco_finish"
            if name.startswith("cuco_")
            else "",
        )

    @property
    def kernels(self) -> list[FunctionSpan]:
        return [one for one in self.functions if one.kernel]

    def kernel(self, name: str) -> FunctionSpan:
        return next((one for one in self.kernels if one.name == name), None) or self.function(name)

    def calls(self, *, op: str | None = None, function: str | None = None) -> list[CallSpan]:
        """Communication calls in source order, of one operation and of one function if asked."""
        return [
            one
            for one in self.all_calls
            if (op is None or one.op == op) and (function is None or one.function == function)
        ]

    def call_at(self, file: str, offset: int) -> CallSpan | LaunchSpan:
        """The call or launch that an edge or launch of the CommGraph speaks of.

        KeyError for one that stands nowhere as a call of NCCL (made through a function pointer).
        """
        for one in (*self.all_calls, *self.launches):
            if one.file == file and (one.call.start == offset or one.statement.start == offset):
                return one
        raise KeyError(offset)

    @property
    def after_includes(self) -> int:
        """Where declarations can be inserted: the line after the last include, or the beginning."""
        last = 0
        for child in self.reading.unit.root.children:
            if child.kind == "INCLUSION_DIRECTIVE" and child.file == self.main:
                last = max(last, self._line_end(child.expansion[1]))
        return last

    def before(self, function: FunctionSpan | str) -> int:
        """Where something can stand in front of a function and the comment that belongs to it."""
        found = self.function(function) if isinstance(function, str) else function
        return found.comment

    def after(self, function: FunctionSpan | str) -> int:
        """The line after a function."""
        found = self.function(function) if isinstance(function, str) else function
        return self._line_end(found.span.end)

    def line_start(self, offset: int) -> int:
        data = self.reading.unit.bytes_of(self.main)
        return data.rfind(b"\n", 0, offset) + 1

    def indent(self, offset: int) -> str:
        """The white space before the line's first character at ``offset``."""
        line = self.slice((self.line_start(offset), offset))
        return line[: len(line) - len(line.lstrip())]

    def references(self, function: FunctionSpan | str, name: str) -> list[Span]:
        """Where a function's body (parameters included) uses the variable, parameter or function ``name``."""
        found = self.function(function) if isinstance(function, str) else function
        node = next(one for one in own_functions(self.reading) if Span(*_whole(one)) == found.span)
        spans = {
            Span(*part.span)
            for part in node.walk()
            if part.kind in ("DECL_REF_EXPR", "MEMBER_REF_EXPR") and part.spelling == name
        }
        return sorted(span for span in spans if self.reading.unit.slice(found.file, *span) == name)

    def _line_end(self, offset: int) -> int:
        data = self.reading.unit.bytes_of(self.main)
        end = data.find(b"\n", offset)
        return len(data) if end < 0 else end + 1

    def _collect(self, function: Node) -> None:
        for part in function.walk():
            if part.kind != "CALL_EXPR":
                continue
            configuration = next(
                (child for child in part.children if child.spelling in _CONFIGURATIONS), None
            )
            name = strip_profiling(_callee_name(part))
            if name in _CONFIGURATIONS:
                continue
            if configuration is not None:
                self.launches.append(_bracket_launch(part, configuration, function))
            elif name in LAUNCHES:
                self.launches.append(_api_launch(part, name, function))
            elif (
                name in COMMUNICATION
                or name.removesuffix("Config") in COMMUNICATION
                or name in ("ncclGroupStart", "ncclGroupEnd")
            ):
                self.all_calls.append(_call(part, name, function))


def _whole(function: Node) -> tuple[int, int]:
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


def _function(node: Node) -> FunctionSpan:
    body = node.body
    assert body is not None
    whole = Span(*_whole(node))
    parameters = tuple(
        ParameterSpan(one.spelling, one.type, one.text, Span(*one.span)) for one in node.parameters
    )
    _, line, at = node.name_place
    return FunctionSpan(
        name=node.spelling,
        file=node.file,
        line=line,
        span=whole,
        body=Span(*body.expansion),
        signature=Span(whole.start, body.expansion[0]),
        name_span=Span(at, at + len(node.spelling.encode())),
        parameters=parameters,
        result=str(node.cursor.result_type.spelling),
        kernel=is_kernel(node),
        device=is_device(node),
        template=node.kind == "FUNCTION_TEMPLATE",
        launch_bounds=launch_bounds(node),
        comment=_comment_start(node, whole.start),
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


def _callee_name(call: Node) -> str:
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
    statements = []
    for one in _statements(node):
        span = _with_semicolon(one, one.expansion)
        if not statements or (span != statements[-1] and span.covers(statements[-1])):
            statements.append(span)
    macro = None
    for one in node.unit.macros(node.file):
        name, start, end = one
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


def _call(node: Node, name: str, function: Node) -> CallSpan:
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


def _bracket_launch(node: Node, configuration: Node, function: Node) -> LaunchSpan:
    statement, enclosing, macro = _outer(node)
    config = [one for one in configuration.arguments if one.span != (0, 0)]
    arguments = [one for one in node.arguments if one.spelling not in _CONFIGURATIONS]
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


def _api_launch(node: Node, name: str, function: Node) -> LaunchSpan:
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
