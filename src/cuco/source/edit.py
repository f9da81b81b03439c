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

from cuco.errors import UsageError
from cuco.source.analyze import own_functions
from cuco.source.clang_ast import Node
from cuco.source.nccl_calls import COMMUNICATION, LAUNCHES, strip_profiling
from cuco.source.places import (
    CONFIGURATIONS,
    Argument,
    CallSpan,
    FunctionSpan,
    LaunchSpan,
    ParameterSpan,
    Span,
    api_launch,
    bracket_launch,
    callee_name,
    communication_call,
    function_span,
    whole,
)
from cuco.source.reading import Headers, Reading, read


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
            source.functions.append(function_span(node))
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
        places: list[CallSpan | LaunchSpan] = [*self.all_calls, *self.launches]
        for one in places:
            if one.file == file and (one.call.start == offset or one.statement.start == offset):
                return one
        raise KeyError(offset)

    @property
    def after_includes(self) -> int:
        """Where declarations can be inserted: the line after the last include, or the beginning."""
        last = 0
        for child in self.reading.unit.top:
            if child.kind == "INCLUSION_DIRECTIVE" and child.file == self.main:
                last = max(last, self.line_end(child.expansion[1]))
        return last

    def before(self, function: FunctionSpan | str) -> int:
        """Where something can stand in front of a function and the comment that belongs to it."""
        found = self.function(function) if isinstance(function, str) else function
        return found.comment

    def after(self, function: FunctionSpan | str) -> int:
        """The line after a function."""
        found = self.function(function) if isinstance(function, str) else function
        return self.line_end(found.span.end)

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
        node = next(one for one in own_functions(self.reading) if Span(*whole(one)) == found.span)
        spans = {
            Span(*part.span)
            for part in node.walk()
            if part.kind in ("DECL_REF_EXPR", "MEMBER_REF_EXPR") and part.spelling == name
        }
        return sorted(span for span in spans if self.reading.unit.slice(found.file, *span) == name)

    def line_end(self, offset: int) -> int:
        """Where the line after ``offset`` begins, or the end of the text."""
        data = self.reading.unit.bytes_of(self.main)
        end = data.find(b"\n", offset)
        return len(data) if end < 0 else end + 1

    def _collect(self, function: Node) -> None:
        for part in function.walk():
            if part.kind != "CALL_EXPR":
                continue
            configuration = next((child for child in part.children if child.spelling in CONFIGURATIONS), None)
            name = strip_profiling(callee_name(part))
            if name in CONFIGURATIONS:
                continue
            if configuration is not None:
                self.launches.append(bracket_launch(part, configuration, function))
            elif name in LAUNCHES:
                self.launches.append(api_launch(part, name, function))
            elif (
                name in COMMUNICATION
                or name.removesuffix("Config") in COMMUNICATION
                or name in ("ncclGroupStart", "ncclGroupEnd")
            ):
                self.all_calls.append(communication_call(part, name, function))


__all__ = [
    "Argument",
    "CallSpan",
    "Edit",
    "FunctionSpan",
    "LaunchSpan",
    "ParameterSpan",
    "SourceFile",
    "Span",
    "apply",
]
