"""Which kernel parameters are read, written and updated atomically: a flow-insensitive analysis of device
code.

Every pointer expression has a set of roots (parameters, or fields of parameters passed by value) that it may
come from; loads and stores through it count for all of them, also inside device functions that are called.
What cannot be followed is ``unknown``, which everyone must read as read and written.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from cuco.source.clang_ast import Node

#: A parameter's position, and the path of fields below it ("" for the parameter itself).
Root = tuple[int, str]

READ, WRITE, ATOMIC, UNKNOWN, REMOTE = "read", "write", "atomic", "unknown", "remote"
_LOADS = frozenset({"__ldg", "__ldcg", "__ldca", "__ldcs", "__ldlu", "__ldcv", "__cvta_generic_to_shared"})
_STORES = frozenset({"__stcg", "__stcs", "__stwb", "__stwt"})
_ADDRESSES = frozenset(
    {
        "ncclGetLocalPointer",
        "ncclGetLsaPointer",
        "ncclGetPeerPointer",
        "ncclGetMultimemPointer",
        "ncclGetLsaMultimemPointer",
        "__cvta_generic_to_global",
        "localPtr",
        "lsaPtr",
        "peerPtr",
        "multimemPtr",
        "lsaMultimemPtr",
    }
)
_REMOTE_ADDRESSES = _ADDRESSES - {"ncclGetLocalPointer", "__cvta_generic_to_global", "localPtr"}
_COPIES = {
    "memcpy": (0, 1),
    "memmove": (0, 1),
    "__builtin_memcpy": (0, 1),
    "memcpy_async": (-1, -1),
    "__pipeline_memcpy_async": (0, 1),
}
_GIN = {"put": ((2, WRITE), (4, READ)), "get": ((2, READ), (4, WRITE)), "putValue": ((2, WRITE),)}


@dataclass
class Accesses:
    """What a function does through each root."""

    found: dict[Root, set[str]] = field(default_factory=dict)

    def add(self, roots: set[Root], *what: str) -> None:
        for root in roots:
            self.found.setdefault(root, set()).update(what)


class DeviceAnalysis:
    """Summaries of device functions, made once each. Recursive calls see the summary so far."""

    def __init__(self) -> None:
        self._done: dict[str, Accesses] = {}
        self._returns: dict[str, set[Root]] = {}

    def summary(self, function: Node) -> Accesses:
        """Accesses through the parameters of a function with a body."""
        if function.key not in self._done:
            accesses = Accesses()
            self._done[function.key] = accesses
            reader = _Reader(function, self, accesses)
            reader.run()
            self._returns[function.key] = reader.returned
        return self._done[function.key]

    def returned(self, function: Node) -> set[Root]:
        self.summary(function)
        return self._returns.get(function.key, set())


class _Reader:
    """One function body. Two passes, so that an alias made late in a loop counts for the loop's start."""

    def __init__(self, function: Node, analysis: DeviceAnalysis, accesses: Accesses) -> None:
        self.function, self.analysis, self.accesses = function, analysis, accesses
        self.aliases: dict[str, set[Root]] = {}
        self.remote: set[str] = set()
        self.returned: set[Root] = set()
        for position, parameter in enumerate(function.parameters):
            self.aliases[parameter.key] = {(position, "")}

    def run(self) -> None:
        for child in self.function.children:
            if child.kind not in ("PARM_DECL", "COMPOUND_STMT"):
                self.visit(child)
        for _ in range(2):
            if self.function.body is not None:
                self.visit(self.function.body)

    # ---- roots -----------------------------------------------------------------------------------

    def roots(self, node: Node) -> set[Root]:
        """Parameters that a pointer, window or aggregate expression may come from."""
        node = node.strip()
        kids = node.expressions
        if node.kind == "DECL_REF_EXPR":
            return self.aliases.get(node.referenced.key, set()) if node.referenced else set()
        if node.kind == "MEMBER_REF_EXPR":
            return self._field_roots(node, kids)
        if node.kind in ("BINARY_OPERATOR", "COMPOUND_ASSIGNMENT_OPERATOR", "INIT_LIST_EXPR"):
            leading = [child for child in kids if child.is_pointer or child.strip().is_pointer] or kids
            return set().union(*(self.roots(child) for child in leading), set())
        if node.kind == "CONDITIONAL_OPERATOR" and len(kids) == 3:
            return self.roots(kids[1]) | self.roots(kids[2])
        if node.kind in ("ARRAY_SUBSCRIPT_EXPR", "UNARY_OPERATOR") and kids:
            return self.roots(kids[0])
        if node.kind == "CALL_EXPR":
            return self._call_roots(node)
        return set()

    def _field_roots(self, node: Node, kids: list[Node]) -> set[Root]:
        owner = self.roots(kids[0]) if kids else self.aliases.get("this", set())
        name = node.member_name
        found = {(position, f"{path}.{name}" if path else name) for position, path in owner}
        return found | self.aliases.get(f"field {name}", set())

    def _call_roots(self, node: Node) -> set[Root]:
        declared = node.referenced
        body = declared.definition if declared is not None else None
        if body is not None and declared is not None and declared.kind in ("FUNCTION_DECL", "CXX_METHOD"):
            found: set[Root] = set()
            for position, path in self.analysis.returned(body):
                if position < len(node.arguments):
                    found |= {
                        (at, f"{up}.{path}" if up and path else up or path)
                        for at, up in self.roots(node.arguments[position])
                    }
            return found
        found = set()
        given = node.arguments[:1] if node.spelling in _ADDRESSES else node.arguments
        for argument in given:
            if argument.is_pointer or not argument.strip().canonical_type.endswith(
                ("int", "long", "size_t", "ncclDevComm")
            ):
                found |= self.roots(argument)
        if node.expressions and node.expressions[0].strip().kind == "MEMBER_REF_EXPR":
            found |= set().union(
                *(self.roots(child) for child in node.expressions[0].strip().expressions), set()
            )
        return found

    def is_remote(self, node: Node) -> bool:
        """Whether an address expression may lead into a peer's memory."""
        for part in node.walk():
            if part.kind == "CALL_EXPR" and part.spelling in _REMOTE_ADDRESSES:
                return True
            if (
                part.kind == "DECL_REF_EXPR"
                and part.referenced is not None
                and part.referenced.key in self.remote
            ):
                return True
        return False

    # ---- accesses --------------------------------------------------------------------------------

    def touch(self, node: Node, *what: str) -> None:
        """An access of the lvalue ``node``: through a pointer it counts, on a local variable it does not."""
        node = node.strip()
        kids = node.expressions
        if node.kind in ("ARRAY_SUBSCRIPT_EXPR", "UNARY_OPERATOR") and kids and node.operator in ("", "*"):
            pointed = kids[0]
            self.accesses.add(self._dereferenced(pointed), *what)
            if self.is_remote(pointed):
                self.accesses.add(self._dereferenced(pointed), REMOTE)
            for child in kids:
                self.visit(child)
        elif node.kind == "MEMBER_REF_EXPR" and kids:
            if kids[0].is_pointer:
                self.accesses.add(self._dereferenced(kids[0]), *what)
                self.visit(kids[0])
            else:
                self.touch(kids[0], *what)
        elif node.kind == "CALL_EXPR" and node.spelling in ("operator[]", "operator*"):
            self.accesses.add(self._call_roots(node), *what)
            for child in kids:
                self.visit(child)
        elif (
            node.kind == "DECL_REF_EXPR"
            and node.referenced is not None
            and node.referenced.type.endswith("&")
        ):
            self.accesses.add(self.aliases.get(node.referenced.key, set()), *what)
        elif node.kind not in ("DECL_REF_EXPR", "MEMBER_REF_EXPR"):
            self.visit(node)

    def _dereferenced(self, node: Node) -> set[Root]:
        """Roots of a pointer; one level deeper for a pointer that was itself loaded from memory."""
        return self.roots(node)

    def alias(self, key: str, node: Node) -> None:
        found = self.roots(node)
        if found:
            self.aliases.setdefault(key, set()).update(found)
        if self.is_remote(node):
            self.remote.add(key)

    def visit(self, node: Node) -> None:
        """An expression used as a value, or a statement."""
        kind, kids = node.kind, node.expressions
        if kind == "VAR_DECL":
            self._declare(node)
        elif kind == "BINARY_OPERATOR" and node.operator == "=" and len(kids) == 2:
            self._assign(kids[0], kids[1])
        elif kind == "COMPOUND_ASSIGNMENT_OPERATOR" and len(kids) == 2:
            self.touch(kids[0], READ, WRITE)
            self.visit(kids[1])
        elif kind == "UNARY_OPERATOR" and kids:
            self._unary(node, kids[0])
        elif kind in ("ARRAY_SUBSCRIPT_EXPR", "MEMBER_REF_EXPR") and kids:
            self._load(node)
        elif kind == "CALL_EXPR":
            self._call(node)
        elif kind == "RETURN_STMT":
            for child in kids:
                if child.is_pointer or child.type.startswith("ncclWindow"):
                    self.returned |= self.roots(child)
                self.visit(child)
        elif kind in ("ASM_STMT", "MS_ASM_STMT"):
            self._assembly(node)
        else:
            for child in node.children:
                self.visit(child)

    def _declare(self, node: Node) -> None:
        for child in node.expressions:
            if child.kind.endswith(("EXPR", "OPERATOR", "LITERAL")):
                self.alias(node.key, child)
                if node.type.endswith("&"):
                    self._address(child)
                else:
                    self.visit(child)

    def _assign(self, target: Node, source: Node) -> None:
        self.visit(source)
        inner = target.strip()
        if inner.kind == "DECL_REF_EXPR" and inner.referenced is not None:
            self.alias(inner.referenced.key, source)
        elif inner.kind == "MEMBER_REF_EXPR":
            self.alias(f"field {inner.member_name}", source)
        self.touch(target, WRITE)

    def _unary(self, node: Node, inner: Node) -> None:
        sign = node.operator
        if sign == "&":
            self._address(inner)
        elif sign == "*":
            self._load(node)
        elif sign.endswith(("++", "--")):
            self.touch(inner, READ, WRITE)
        else:
            self.visit(inner)

    def _address(self, node: Node) -> None:
        for child in node.strip().expressions:
            self.visit(child)

    def _load(self, node: Node) -> None:
        if node.kind == "MEMBER_REF_EXPR" and not node.expressions[0].is_pointer:
            inner = node.expressions[0].strip()
            if inner.kind in ("DECL_REF_EXPR", "MEMBER_REF_EXPR"):
                self.visit(inner)
                return
        array = node.cursor.type.get_canonical().kind.name == "CONSTANTARRAY"
        self.touch(node, *(() if array else (READ,)))

    def _assembly(self, node: Node) -> None:
        """Inline PTX: the operand in brackets of a load, store, copy or atomic says what is accessed how."""
        operands = [child for child in node.children if not child.kind.endswith("STMT")]
        if operands and operands[0].kind == "STRING_LITERAL":
            operands = operands[1:]
        for child in operands:
            self.visit(child)
        uses = ptx_addresses(node.text)
        for position, what in uses.items():
            if position < len(operands):
                self.accesses.add(self.roots(operands[position]), *what)
        if not operands:
            for parameter in self.function.parameters:
                if parameter.is_pointer and _mentions(node.text, parameter.spelling):
                    self.accesses.add(self.aliases[parameter.key], UNKNOWN)

    # ---- calls -----------------------------------------------------------------------------------

    def _call(self, node: Node) -> None:
        name, given = node.spelling, node.arguments
        declared = node.referenced
        if name in ("operator[]", "operator*") and len(node.expressions) > 1:
            self.touch(node, READ)
            return
        if name == "operator=" and len(given) == 2:
            self._assign(given[0], given[1])
            return
        for child in given:
            self._address(child) if child.strip().operator == "&" else self.visit(child)
        for child in node.expressions[:1]:
            if child.strip().kind == "MEMBER_REF_EXPR":
                self._receiver(child.strip(), name)
        body = declared.definition if declared is not None else None
        if name.startswith("atomic") and given and declared is not None and declared.kind != "CONSTRUCTOR":
            self._by_name(given[:1], READ, WRITE, ATOMIC)
        elif name in ("atomic_ref", "atomic") and given:
            self._by_name(given[:1], READ, WRITE, ATOMIC)
        elif name in _LOADS:
            self._by_name(given[:1], READ)
        elif name in _STORES:
            self._by_name(given[:1], WRITE)
        elif name in _COPIES:
            self._copy(name, given)
        elif name in _GIN and len(given) > 3:
            self._gin(name, given)
        elif name in _ADDRESSES or name.startswith(("nccl", "__sync", "printf", "assert", "__assert")):
            return
        elif body is not None:
            self._user_call(body, given)
        else:
            self._unknown_call(declared, given)

    def _receiver(self, node: Node, name: str) -> None:
        for child in node.expressions:
            self.visit(child)
            if name in ("load", "store", "exchange", "fetch_add", "fetch_sub", "wait"):
                self.accesses.add(self.roots(child), READ, WRITE, ATOMIC)

    def _by_name(self, given: list[Node], *what: str) -> None:
        for argument in given:
            self.accesses.add(self.roots(argument), *what)
            if self.is_remote(argument):
                self.accesses.add(self.roots(argument), REMOTE)

    def _copy(self, name: str, given: list[Node]) -> None:
        pointers = [one for one in given if one.is_pointer]
        to, source = _COPIES[name]
        pair = pointers[:2] if to < 0 else [given[to], given[source]] if len(given) > max(to, source) else []
        if len(pair) == 2:
            self._by_name(pair[:1], WRITE)
            self._by_name(pair[1:], READ)

    def _gin(self, name: str, given: list[Node]) -> None:
        if given[2].type.startswith("ncclSymPtr"):
            self._by_name([given[2]], READ if name == "get" else WRITE, REMOTE)
            self._by_name(given[3:4] if name != "putValue" else [], WRITE if name == "get" else READ)
            return
        for position, what in _GIN[name]:
            if position < len(given):
                self.accesses.add(self.roots(given[position]), what, *((REMOTE,) if position == 2 else ()))

    def _user_call(self, body: Node, given: list[Node]) -> None:
        for (position, path), what in list(self.analysis.summary(body).found.items()):
            if position < len(given):
                roots = {
                    (at, f"{up}.{path}" if up and path else up or path)
                    for at, up in self.roots(given[position])
                }
                self.accesses.add(roots, *what)
                if self.is_remote(given[position]):
                    self.accesses.add(roots, REMOTE)

    def _unknown_call(self, declared: Node | None, given: list[Node]) -> None:
        for position, argument in enumerate(given):
            if not argument.is_pointer and not argument.strip().is_pointer:
                continue
            roots = self.roots(argument)
            parameters = declared.parameters if declared is not None else []
            kind = (
                parameters[position].canonical_type if position < len(parameters) else argument.canonical_type
            )
            self.accesses.add(roots, READ if kind.startswith("const ") else UNKNOWN)


def ptx_addresses(statement: str) -> dict[int, tuple[str, ...]]:
    """Operand numbers of an asm statement that are addresses, with what the instruction does there."""
    found: dict[int, tuple[str, ...]] = {}
    for instruction in _ptx_text(statement).replace("{", " ").split(";"):
        words = instruction.split()
        words = words[1:] if words and words[0].startswith("@") else words
        if not words or "[" not in instruction:
            continue
        brackets = [part.partition("]")[0] for part in instruction.split("[")[1:]]
        name = words[0]
        for index, inside in enumerate(brackets):
            digits = inside.partition("%")[2].split("+")[0].strip()
            if digits.isdigit():
                found[int(digits)] = _ptx_effect(name, index)
    return found


def _ptx_effect(name: str, index: int) -> tuple[str, ...]:
    if name.startswith(("ld.", "ldu", "ldmatrix", "prefetch", "multimem.ld")):
        return (READ,)
    if name.startswith(("st.", "stmatrix", "multimem.st")):
        return (WRITE,)
    if name.startswith(("red.", "atom.", "multimem.red", "mbarrier", "cp.reduce")):
        return (READ, WRITE, ATOMIC)
    if name.startswith("cp.async"):
        return (WRITE,) if index == 0 else (READ,)
    return (UNKNOWN,)


def _ptx_text(statement: str) -> str:
    """The string literals of an asm statement's template, joined."""
    inside, text, index = False, [], 0
    while index < len(statement):
        letter = statement[index]
        if inside and letter == "\\":
            text.append(" ")
            index += 2
            continue
        if letter == '"':
            inside = not inside
        elif inside:
            text.append(letter)
        elif letter == ":":
            break
        index += 1
    return "".join(text)


def _mentions(text: str, name: str) -> bool:
    """Whether a name stands as a whole word in a text."""
    at = text.find(name)
    while at >= 0:
        before, after = text[at - 1 : at], text[at + len(name) : at + len(name) + 1]
        if not (before.isalnum() or before == "_") and not (after.isalnum() or after == "_"):
            return True
        at = text.find(name, at + 1)
    return False
