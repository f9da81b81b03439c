"""Walks a kernel with the device functions it calls: every call in order, under which conditions, with what
indices."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from cuco.source.clang_ast import LOOPS, Node
from cuco.source.linting.divergence import Divergence, Guard, Level

#: An index whose value is the block's number.
BLOCK = "blockIdx.x"
_MAX_DEPTH = 16


@dataclass(frozen=True, eq=False)
class DeviceCall:
    """A call on the way through a kernel; ``owner`` is the type it is a method of (or constructs)."""

    name: str
    owner: str
    node: Node
    guards: tuple[Guard, ...]
    returns: tuple[tuple[Node, Guard], ...]
    constants: dict[str, int | str]
    in_else: bool = False

    @property
    def arguments(self) -> list[Node]:
        return self.node.arguments

    def index(self, position: int) -> int | str | None:
        """An argument as a constant, as ``blockIdx.x``, or None where it is neither."""
        return index_of(self.arguments[position], self.constants) if position < len(self.arguments) else None


@dataclass(eq=False)
class KernelFacts:
    """What was met in one kernel, in source order."""

    kernel: Node
    block: int | None
    grid: tuple[int, ...]
    calls: list[DeviceCall] = field(default_factory=list)
    spins: list[Node] = field(default_factory=list)

    def named(self, *names: str) -> list[DeviceCall]:
        return [call for call in self.calls if call.name in names]


def index_of(node: Node, constants: dict[str, int | str]) -> int | str | None:
    """An index expression as a constant or as the block's number; through variables that hold one."""
    inner = node.strip()
    if inner.kind == "INIT_LIST_EXPR" and len(inner.expressions) == 1:
        return index_of(inner.expressions[0], constants)
    if inner.kind == "MEMBER_REF_EXPR" and inner.expressions:
        return (
            BLOCK
            if inner.expressions[0].strip().spelling == "blockIdx" and inner.member_name == "x"
            else None
        )
    if inner.kind == "DECL_REF_EXPR" and inner.referenced is not None and inner.referenced.key in constants:
        return constants[inner.referenced.key]
    return node.constant if inner.kind != "CALL_EXPR" else None


@dataclass
class _Scope:
    """Where the walk is: conditions passed, returns behind, what variables hold."""

    guards: tuple[Guard, ...] = ()
    returns: list[tuple[Node, Guard]] = field(default_factory=list)
    depth: int = 0


class DeviceWalk:
    """One kernel."""

    def __init__(
        self, kernel: Node, own_files: frozenset[str], block: int | None, grid: tuple[int, ...]
    ) -> None:
        self.facts = KernelFacts(kernel, block, grid)
        self.own_files = own_files
        self.levels: dict[str, Level] = {}
        self.constants: dict[str, int | str] = {}
        self.active: list[str] = []

    def run(self) -> KernelFacts:
        if self.facts.kernel.body is not None:
            self._visit(self.facts.kernel.body, _Scope())
        return self.facts

    def _divergence(self) -> Divergence:
        known = {key: value for key, value in self.constants.items() if isinstance(value, int)}
        return Divergence(self.levels, known, self.facts.block)

    def _visit(self, node: Node, scope: _Scope) -> None:
        kind = node.kind
        if kind == "IF_STMT":
            self._branch(node, scope)
        elif kind in LOOPS:
            self._loop(node, scope)
        elif kind == "CONDITIONAL_OPERATOR":
            condition, *ways = node.expressions
            self._visit(condition, scope)
            inner = self._under(scope, self._divergence().guard(condition))
            for way in ways:
                self._visit(way, inner)
        elif kind == "VAR_DECL":
            self._declare(node, scope)
        elif kind == "CALL_EXPR":
            self._call(node, scope)
        elif kind == "BINARY_OPERATOR" and node.operator in ("&&", "||"):
            left, right = node.expressions
            self._visit(left, scope)
            self._visit(right, self._under(scope, self._divergence().guard(left)))
        elif kind in ("BINARY_OPERATOR", "COMPOUND_ASSIGNMENT_OPERATOR", "UNARY_OPERATOR"):
            self._assign(node, scope)
        elif kind == "LAMBDA_EXPR":
            return
        else:
            for child in node.children:
                self._visit(child, scope)

    @staticmethod
    def _under(scope: _Scope, guard: Guard) -> _Scope:
        return replace(scope, guards=(*scope.guards, guard))

    def _branch(self, node: Node, scope: _Scope) -> None:
        kids = list(node.children)
        while len(kids) > 1 and kids[0].kind in ("DECL_STMT", "VAR_DECL"):
            self._visit(kids.pop(0), scope)
        condition, ways = kids[0], kids[1:]
        self._visit(condition, scope)
        guard = self._divergence().guard(condition)
        decided = condition.strip().constant if condition.strip().kind != "DECL_REF_EXPR" else None
        for position, way in enumerate(ways):
            if decided is not None and bool(decided) == bool(position):
                continue  # a branch that a constant condition rules out
            shown = guard if position == 0 else replace(guard, text=f"not ({guard.text})")
            self._visit(way, self._under(scope, shown) if guard.level else scope)
            if _leaves(way):
                scope.returns.append((way, shown))

    def _loop(self, node: Node, scope: _Scope) -> None:
        kids = node.children
        body = kids[0] if node.kind == "DO_STMT" else kids[-1]
        condition = _loop_condition(node)
        if condition is not None and is_spin(node, condition, body):
            self.facts.spins.append(node)
        for child in kids:
            if child is not body:
                self._visit(child, scope)
        guard = self._divergence().guard(condition, loop=True) if condition is not None else None
        self._visit(body, self._under(scope, guard) if guard is not None and guard.level else scope)

    def _declare(self, node: Node, scope: _Scope) -> None:
        for child in node.children:
            self._visit(child, scope)
        values = [child for child in node.expressions if child.kind.endswith(("EXPR", "OPERATOR", "LITERAL"))]
        if values:
            self._remember(node, values[-1])

    def _remember(self, variable: Node, value: Node) -> None:
        divergence = self._divergence()
        level = divergence.level(value)
        self.levels[variable.key] = max(level, self.levels.get(variable.key, Level.UNIFORM))
        if divergence.is_index(value):
            self.levels[f"index {variable.key}"] = Level.THREAD
        index = index_of(value, self.constants)
        if index is not None and variable.key not in self.constants:
            self.constants[variable.key] = index

    def _assign(self, node: Node, scope: _Scope) -> None:
        for child in node.children:
            self._visit(child, scope)
        changes = node.operator.endswith(("++", "--")) or node.kind == "COMPOUND_ASSIGNMENT_OPERATOR"
        if not changes and node.operator != "=":
            return
        target = node.expressions[0].strip()
        if target.kind != "DECL_REF_EXPR" or target.referenced is None:
            return
        key = target.referenced.key
        self.constants.pop(key, None)
        self.levels.pop(f"index {key}", None)
        level = max(
            (self._divergence().level(child) for child in node.expressions[1:]), default=Level.UNIFORM
        )
        guarded = max((guard.level for guard in scope.guards), default=Level.UNIFORM)
        mixed = Level.UNKNOWN if guarded else Level.UNIFORM
        self.levels[key] = max(self.levels.get(key, Level.UNIFORM), level, mixed)

    def _call(self, node: Node, scope: _Scope) -> None:
        for child in node.children:
            self._visit(child, scope)
        declared = node.referenced
        owner = ""
        if declared is not None and declared.kind in (
            "CXX_METHOD",
            "CONSTRUCTOR",
            "FUNCTION_TEMPLATE",
            "DESTRUCTOR",
        ):
            owner = str(declared.cursor.semantic_parent.spelling)
        name = node.spelling or (node.expressions[0].strip().member_name if node.expressions else "")
        call = DeviceCall(name, owner, node, scope.guards, tuple(scope.returns), dict(self.constants))
        self.facts.calls.append(call)
        body = declared.definition if declared is not None else None
        if (
            body is None
            or body.file not in self.own_files
            or body.place in self.active
            or scope.depth > _MAX_DEPTH
        ):
            return
        for parameter, argument in zip(body.parameters, node.arguments, strict=False):
            self.constants.pop(parameter.key, None)
            self.levels.pop(f"index {parameter.key}", None)
            self.levels[parameter.key] = Level.UNIFORM
            self._remember(parameter, argument)
        self.active.append(body.place)
        inner = _Scope(scope.guards, list(scope.returns), scope.depth + 1)
        for child in body.children:
            if child.kind not in ("PARM_DECL", "TYPE_REF"):
                self._visit(child, inner)
        self.active.pop()


def _leaves(way: Node) -> bool:
    """Whether a branch ends in a return of its function."""
    last = way.children[-1] if way.kind == "COMPOUND_STMT" and way.children else way
    return last.kind == "RETURN_STMT"


def _loop_condition(node: Node) -> Node | None:
    """The condition of a loop; of a for loop the first expression that compares or tests."""
    kids = node.children
    if node.kind == "WHILE_STMT":
        return next((child for child in kids[:-1] if child.kind != "VAR_DECL"), None)
    if node.kind == "DO_STMT":
        return kids[-1]
    if node.kind == "FOR_STMT":
        return next(
            (
                child
                for child in kids[:-1]
                if child.strip().operator in ("<", "<=", ">", ">=", "==", "!=", "&&", "||", "!")
                or child.canonical_type == "bool"
            ),
            None,
        )
    return None


def is_spin(loop: Node, condition: Node, body: Node) -> bool:
    """Whether a loop does nothing but look at memory again and again."""
    if loop.kind == "FOR_STMT" and len(loop.children) > 2:
        return False
    allowed = {
        "__nanosleep",
        "__threadfence",
        "__threadfence_system",
        "__threadfence_block",
        "__syncwarp",
        "clock64",
    }
    for part in body.walk():
        if part.kind == "CALL_EXPR" and part.spelling not in allowed:
            return False
        if (
            part.operator in ("=",)
            or part.operator.endswith(("++", "--"))
            or part.kind in ("COMPOUND_ASSIGNMENT_OPERATOR", "BREAK_STMT", "RETURN_STMT", "GOTO_STMT")
        ):
            return False
    changing = any(
        part.operator.endswith(("++", "--"))
        or part.operator == "="
        or part.kind in ("CALL_EXPR", "COMPOUND_ASSIGNMENT_OPERATOR")
        for part in condition.walk()
    )
    return not changing and bool(_plain_loads(condition))


def _plain_loads(condition: Node) -> list[Node]:
    """Loads through pointers that are neither volatile nor atomic."""
    found = []
    for part in condition.walk():
        if (
            part.kind == "ARRAY_SUBSCRIPT_EXPR"
            or (part.kind == "UNARY_OPERATOR" and part.operator == "*")
            or (part.kind == "MEMBER_REF_EXPR" and part.expressions and part.expressions[0].is_pointer)
        ):
            base = part.expressions[0]
            kind = base.strip().canonical_type + " " + part.canonical_type
            if "volatile" not in kind and base.strip().spelling not in ("threadIdx", "blockIdx"):
                found.append(part)
    return found
