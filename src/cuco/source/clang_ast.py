"""A typed, lazy view of libclang's tree, with the file positions that editing and reporting need.

libclang gives expansion positions; a token that came through a macro argument has its own place in the file,
and ``Node.span`` is that place (``clang_getFileLocation``). A node that a macro's body made up has the macro
call's span, or an empty one; ``text`` then writes the expression from the tree.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from functools import cached_property
from typing import Any

from clang import cindex

#: Kinds that wrap one expression without changing what it denotes.
WRAPPERS = frozenset(
    {
        "UNEXPOSED_EXPR",
        "PAREN_EXPR",
        "CSTYLE_CAST_EXPR",
        "CXX_STATIC_CAST_EXPR",
        "CXX_CONST_CAST_EXPR",
        "CXX_REINTERPRET_CAST_EXPR",
        "CXX_DYNAMIC_CAST_EXPR",
        "CXX_FUNCTIONAL_CAST_EXPR",
    }
)
LOOPS = frozenset({"FOR_STMT", "WHILE_STMT", "DO_STMT", "CXX_FOR_RANGE_STMT"})
FUNCTIONS = frozenset(
    {"FUNCTION_DECL", "CXX_METHOD", "FUNCTION_TEMPLATE", "CONSTRUCTOR", "DESTRUCTOR", "CONVERSION_FUNCTION"}
)
RECORDS = frozenset(
    {"STRUCT_DECL", "CLASS_DECL", "CLASS_TEMPLATE", "CLASS_TEMPLATE_PARTIAL_SPECIALIZATION", "UNION_DECL"}
)
_REFERENCES = frozenset({"TYPE_REF", "TEMPLATE_REF", "NAMESPACE_REF"})
_BINARY = {
    1: ".*",
    2: "->*",
    3: "*",
    4: "/",
    5: "%",
    6: "+",
    7: "-",
    8: "<<",
    9: ">>",
    10: "<=>",
    11: "<",
    12: ">",
    13: "<=",
    14: ">=",
    15: "==",
    16: "!=",
    17: "&",
    18: "^",
    19: "|",
    20: "&&",
    21: "||",
    22: "=",
    23: "*=",
    24: "/=",
    25: "%=",
    26: "+=",
    27: "-=",
    28: "<<=",
    29: ">>=",
    30: "&=",
    31: "^=",
    32: "|=",
    33: ",",
}
_UNARY = {1: "post++", 2: "post--", 3: "++", 4: "--", 5: "&", 6: "*", 7: "+", 8: "-", 9: "~", 10: "!"}

_MACRO_DEFINITION = 501
_library: Any = None


def _lib() -> Any:
    global _library
    if _library is None:
        lib = cindex.conf.lib
        lib.clang_getFileLocation.argtypes = lib.clang_getInstantiationLocation.argtypes
        lib.clang_getFileLocation.restype = None
        for name in ("clang_getCursorBinaryOperatorKind", "clang_getCursorUnaryOperatorKind"):
            function = getattr(lib, name)
            function.argtypes, function.restype = [cindex.Cursor], ctypes.c_int
        lib.clang_Cursor_Evaluate.argtypes, lib.clang_Cursor_Evaluate.restype = (
            [cindex.Cursor],
            ctypes.c_void_p,
        )
        lib.clang_EvalResult_getKind.argtypes, lib.clang_EvalResult_getKind.restype = (
            [ctypes.c_void_p],
            ctypes.c_int,
        )
        lib.clang_EvalResult_getAsLongLong.argtypes = [ctypes.c_void_p]
        lib.clang_EvalResult_getAsLongLong.restype = ctypes.c_longlong
        lib.clang_EvalResult_dispose.argtypes = [ctypes.c_void_p]
        _library = lib
    return _library


def _place(location: Any) -> tuple[str, int, int]:
    """File name, line and byte offset at which the location's token is written."""
    file, line, column, offset = cindex.c_object_p(), ctypes.c_uint(), ctypes.c_uint(), ctypes.c_uint()
    _lib().clang_getFileLocation(
        location, ctypes.byref(file), ctypes.byref(line), ctypes.byref(column), ctypes.byref(offset)
    )
    name = cindex.File(file).name if file else ""
    return str(name), int(line.value), int(offset.value)


class Node:
    """One cursor. Equality is identity of the declaration or expression; children are made on first use."""

    __slots__ = ("__dict__", "cursor", "parent", "unit")

    def __init__(self, cursor: Any, unit: Unit, parent: Node | None = None) -> None:
        self.cursor, self.unit, self.parent = cursor, unit, parent

    @cached_property
    def kind(self) -> str:
        try:
            return str(self.cursor.kind.name)
        except ValueError:  # a kind younger than the bindings
            return "UNEXPOSED_EXPR"

    @cached_property
    def spelling(self) -> str:
        return str(self.cursor.spelling or "")

    @cached_property
    def children(self) -> list[Node]:
        return [Node(child, self.unit, self) for child in self.cursor.get_children()]

    @cached_property
    def expressions(self) -> list[Node]:
        """Children that are not references to types, templates or namespaces."""
        return [child for child in self.children if child.kind not in _REFERENCES]

    @cached_property
    def _start(self) -> tuple[str, int, int]:
        return _place(self.cursor.extent.start)

    @property
    def file(self) -> str:
        return self._start[0]

    @property
    def line(self) -> int:
        return self._start[1]

    @cached_property
    def end_line(self) -> int:
        return _place(self.cursor.extent.end)[1]

    @cached_property
    def span(self) -> tuple[int, int]:
        """Byte offsets in ``file``; empty or a macro call's where a macro body made the node up."""
        return self._start[2], _place(self.cursor.extent.end)[2]

    @cached_property
    def expansion(self) -> tuple[int, int]:
        """Byte offsets of what stands in the file: a macro call covers everything that it produced."""
        return int(self.cursor.extent.start.offset), int(self.cursor.extent.end.offset)

    @cached_property
    def name_place(self) -> tuple[str, int, int]:
        return _place(self.cursor.location)

    @cached_property
    def type(self) -> str:
        return str(self.cursor.type.spelling)

    @cached_property
    def canonical_type(self) -> str:
        return str(self.cursor.type.get_canonical().spelling)

    @cached_property
    def place(self) -> str:
        """Where a declaration is written; the same for all instantiations of a template."""
        file, _, offset = self.name_place
        return f"{file}:{offset}"

    @property
    def is_pointer(self) -> bool:
        return self.canonical_type.replace("const", "").rstrip(" &").endswith(("*", "]"))

    @cached_property
    def referenced(self) -> Node | None:
        return self.unit.node(self.cursor.referenced)

    @cached_property
    def definition(self) -> Node | None:
        """The declaration with the body, of a template the instantiated one where clang has made it."""
        if any(child.kind == "COMPOUND_STMT" for child in self.children):
            return self
        found = self.unit.node(self.cursor.get_definition())
        return found if found and any(child.kind == "COMPOUND_STMT" for child in found.children) else None

    @cached_property
    def body(self) -> Node | None:
        return next((child for child in self.children if child.kind == "COMPOUND_STMT"), None)

    @cached_property
    def key(self) -> str:
        """Tells one declaration from every other (of a template: one instantiation from every other)."""
        return f"{self.cursor.canonical.hash:x}"

    @cached_property
    def parameters(self) -> list[Node]:
        return [child for child in self.children if child.kind == "PARM_DECL"]

    @cached_property
    def operator(self) -> str:
        """The operator of a unary or binary expression, ``""`` for any other node."""
        if self.kind in ("BINARY_OPERATOR", "COMPOUND_ASSIGNMENT_OPERATOR"):
            return _BINARY.get(int(_lib().clang_getCursorBinaryOperatorKind(self.cursor)), "")
        if self.kind == "UNARY_OPERATOR":
            return _UNARY.get(int(_lib().clang_getCursorUnaryOperatorKind(self.cursor)), "")
        return ""

    @cached_property
    def constant(self) -> int | None:
        """The value of an integer constant expression, else None."""
        result = _lib().clang_Cursor_Evaluate(self.cursor)
        if not result:
            return None
        try:
            if int(_lib().clang_EvalResult_getKind(result)) != 1:
                return None
            return int(_lib().clang_EvalResult_getAsLongLong(result))
        finally:
            _lib().clang_EvalResult_dispose(result)

    def walk(self) -> Iterator[Node]:
        """This node and everything below it, in source order."""
        stack = [self]
        while stack:
            node = stack.pop()
            yield node
            stack.extend(reversed(node.children))

    def strip(self) -> Node:
        """The expression without parentheses, casts and implicit conversions."""
        node = self
        while node.kind in WRAPPERS or (node.kind == "DECL_REF_EXPR" and not node.spelling):
            inner = node.expressions  # a reference without a name is a template's argument put in place
            if not inner:
                return node
            node = inner[-1]
        return node

    @cached_property
    def arguments(self) -> list[Node]:
        """The arguments of a call, without the callee and without a launch configuration."""
        if self.kind != "CALL_EXPR":
            return []
        given = [Node(child, self.unit, self) for child in self.cursor.get_arguments() if child is not None]
        if given or self.referenced is not None or len(self.expressions) < 2:
            return given
        return self.expressions[1:]  # a dependent call: clang knows neither the callee nor its arguments

    @cached_property
    def text(self) -> str:
        """The expression as written, or as the tree says where a macro made it up."""
        start, end = self.span
        written = self.unit.slice(self.file, start, end)
        if end > start and written:
            return " ".join(written.split())
        return render(self)

    @cached_property
    def member_name(self) -> str:
        """The name behind ``.`` or ``->``; clang leaves it out where the type depends on a template."""
        if self.spelling:
            return self.spelling
        file, _, offset = self.name_place
        return self.unit.identifier(file, offset) or self._name_at_end()

    def _name_at_end(self) -> str:
        start, end = self.span
        written = self.unit.slice(self.file, start, end)
        index = len(written)
        while index and (written[index - 1].isalnum() or written[index - 1] == "_"):
            index -= 1
        return written[index:]


class Unit:
    """A parsed translation unit and the texts of its files."""

    def __init__(self, tu: Any, main: str, texts: dict[str, bytes], own_files: frozenset[str]) -> None:
        self.tu, self.main, self.texts, self.own_files = tu, main, texts, own_files
        self.root = Node(tu.cursor, self)
        self._declarations: dict[int, Node] = {}
        self._macro_names: dict[str, dict[int, str]] = {}
        self._macros: dict[str, list[tuple[str, int, int]]] = {}

    @cached_property
    def top(self) -> list[Node]:
        """Declarations, includes and macro uses of the user's own files, in order."""
        lib, found = _lib(), []

        def visit(cursor: Any, parent: Any, data: Any) -> int:
            del parent, data
            if cursor._kind_id != _MACRO_DEFINITION:  # thousands, from system headers
                if not lib.clang_Location_isInSystemHeader(lib.clang_getCursorLocation(cursor)):
                    cursor._tu = self.tu
                    found.append(cursor)
            return 1  # continue

        lib.clang_visitChildren(self.tu.cursor, cindex.callbacks["cursor_visit"](visit), None)
        nodes = [Node(cursor, self, self.root) for cursor in found]
        return [node for node in nodes if node.file in self.own_files]

    def node(self, cursor: Any) -> Node | None:
        """The declaration's node, always the same object for the same cursor."""
        if cursor is None or cursor.kind == cindex.CursorKind.NO_DECL_FOUND:
            return None
        return self._declarations.setdefault(int(cursor.hash), Node(cursor, self))

    @cached_property
    def _functions(self) -> dict[str, Node]:
        return {
            child.spelling: child
            for top in self.root.children
            for child in (top.children if top.kind == "LINKAGE_SPEC" else [top])
            if child.kind == "FUNCTION_DECL"
        }

    def function(self, name: str) -> Node | None:
        """The declaration of a global function."""
        return self._functions.get(name)

    def macros(self, file: str) -> list[tuple[str, int, int]]:
        """Calls of function-like macros in a file: name, start and end of the call, outer ones first."""
        if file not in self._macros:
            found = []
            for child in self.top:
                if child.kind == "MACRO_INSTANTIATION" and child.file == file:
                    start, end = child.expansion
                    if end - start > len(child.spelling.encode()):
                        found.append((child.spelling, start, end))
            self._macros[file] = sorted(found, key=lambda one: (one[1], -one[2]))
        return self._macros[file]

    def macro_at(self, file: str, offset: int) -> str:
        """The name of the macro whose use begins at a byte of a file, or an empty string."""
        if file not in self._macro_names:
            self._macro_names[file] = {
                child.expansion[0]: child.spelling
                for child in self.top
                if child.kind == "MACRO_INSTANTIATION" and child.file == file
            }
        return self._macro_names[file].get(offset, "")

    def bytes_of(self, file: str) -> bytes:
        if file not in self.texts:
            try:
                with open(file, "rb") as handle:
                    self.texts[file] = handle.read()
            except OSError:
                self.texts[file] = b""
        return self.texts[file]

    def slice(self, file: str, start: int, end: int) -> str:
        return self.bytes_of(file)[start:end].decode("utf-8", "replace")

    def identifier(self, file: str, offset: int) -> str:
        data = self.bytes_of(file)
        end = offset
        while end < len(data) and (chr(data[end]).isalnum() or data[end] == ord("_")):
            end += 1
        return data[offset:end].decode("ascii", "replace")


def render(node: Node) -> str:
    """An expression written from the tree, for nodes whose tokens stand in no single place of the file."""
    node = node.strip()
    kids = node.expressions
    if node.kind == "DECL_REF_EXPR" or (node.kind == "MEMBER_REF_EXPR" and not kids):
        return node.member_name
    if node.kind == "MEMBER_REF_EXPR":
        return f"{render(kids[0])}{'->' if kids[0].is_pointer else '.'}{node.member_name}"
    if node.kind in ("BINARY_OPERATOR", "COMPOUND_ASSIGNMENT_OPERATOR") and len(kids) == 2:
        return f"{render(kids[0])} {node.operator} {render(kids[1])}"
    if node.kind == "UNARY_OPERATOR" and kids:
        sign = node.operator
        return f"{render(kids[0])}{sign[4:]}" if sign.startswith("post") else f"{sign}{render(kids[0])}"
    if node.kind == "ARRAY_SUBSCRIPT_EXPR" and len(kids) == 2:
        return f"{render(kids[0])}[{render(kids[1])}]"
    if node.kind == "CALL_EXPR":
        inner = ", ".join(render(argument) for argument in node.arguments if argument.span != (0, 0))
        return inner if node.spelling == "dim3" and "," not in inner else f"{node.spelling}({inner})"
    if node.kind in ("STRING_LITERAL", "CHARACTER_LITERAL"):
        return node.spelling
    value = node.constant
    return str(value) if value is not None else node.spelling
