"""Which conditions of device code depend on the thread, and which of them certainly part the threads of a
block."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum

from cuco.source.clang_ast import Node

_WARP = 32


class Level(IntEnum):
    """How finely a value differs inside a block: not at all, perhaps, between warps, between threads."""

    UNIFORM = 0
    UNKNOWN = 1
    WARP = 2
    THREAD = 3


@dataclass(frozen=True)
class Guard:
    """A condition on the way to a statement. ``certain``: whenever it is evaluated, some threads of the
    block take the other way. ``loop``: it is a loop's, so what differs is how often."""

    text: str
    level: Level
    certain: bool
    loop: bool = False


class Divergence:
    """Levels of expressions, given the levels of variables by declaration key."""

    def __init__(self, levels: Mapping[str, Level], constants: Mapping[str, int], block: int | None) -> None:
        self.levels, self.constants, self.block = levels, constants, block

    def constant(self, node: Node) -> int | None:
        """An integer constant, also through parameters that the caller gave constants."""
        inner = node.strip()
        if inner.kind == "DECL_REF_EXPR" and inner.referenced is not None:
            known = self.constants.get(inner.referenced.key)
            if known is not None:
                return known
        return node.constant if inner.kind != "CALL_EXPR" else None

    def level(self, node: Node) -> Level:
        node = node.strip()
        kids = node.expressions
        if node.kind == "MEMBER_REF_EXPR" and kids and kids[0].strip().spelling == "threadIdx":
            return Level.THREAD
        if node.kind == "DECL_REF_EXPR":
            return self.levels.get(node.referenced.key, Level.UNIFORM) if node.referenced else Level.UNKNOWN
        if node.kind == "CALL_EXPR":
            return self._call(node)
        if node.kind == "BINARY_OPERATOR" and len(kids) == 2:
            return self._binary(node, kids)
        if node.kind in ("ARRAY_SUBSCRIPT_EXPR",) or (node.kind == "UNARY_OPERATOR" and node.operator == "*"):
            inner = max((self.level(child) for child in kids), default=Level.UNIFORM)
            return Level.UNKNOWN if inner else Level.UNIFORM
        return max((self.level(child) for child in kids), default=Level.UNIFORM)

    def _call(self, node: Node) -> Level:
        name = node.spelling
        if name == "thread_rank":
            return Level.THREAD
        if name.startswith("__shfl") or name.startswith("__ballot") or name in ("__any_sync", "__all_sync"):
            return Level.UNKNOWN
        inner = max((self.level(child) for child in node.expressions), default=Level.UNIFORM)
        return min(inner, Level.UNKNOWN) if name else inner

    def _binary(self, node: Node, kids: list[Node]) -> Level:
        left, right = self.level(kids[0]), self.level(kids[1])
        by = self.constant(kids[1])
        if left == Level.THREAD and right == Level.UNIFORM:
            whole_warps = kids[1].strip().spelling == "warpSize" or (
                by is not None and by > 0 and by % _WARP == 0
            )
            if node.operator == "/" and whole_warps:
                return Level.WARP
            if node.operator == ">>" and by is not None and by >= 5:
                return Level.WARP
            if node.operator in ("<", ">=") and by is not None and by % _WARP == 0:
                return Level.WARP
            if node.operator == "&" and by is not None and by & (_WARP - 1) == 0:
                return Level.WARP
        return max(left, right)

    def certain(self, node: Node) -> bool:
        """Whether a thread-dependent condition certainly parts the block: neither all nor none fulfil it."""
        node = node.strip()
        kids = node.expressions
        if node.kind == "UNARY_OPERATOR" and node.operator == "!":
            return self.certain(kids[0])
        if node.kind == "BINARY_OPERATOR" and node.operator == "&&":
            return any(self.certain(child) for child in kids)
        if node.kind == "BINARY_OPERATOR" and node.operator in ("==", "!=", "<", "<=", ">", ">="):
            return self._comparison(node.operator, kids)
        if self._is_thread_index(node):
            return True
        return (
            node.kind == "BINARY_OPERATOR"
            and node.operator in ("%", "&")
            and self._is_thread_index(kids[0])
            and (self.constant(kids[1]) is not None)
        )

    def _is_thread_index(self, node: Node) -> bool:
        """threadIdx.x itself, a variable that holds it, or a warp's or lane's number made of it."""
        node = node.strip()
        kids = node.expressions
        if node.kind == "MEMBER_REF_EXPR":
            return bool(kids) and kids[0].strip().spelling == "threadIdx" and node.member_name == "x"
        if node.kind == "DECL_REF_EXPR" and node.referenced is not None:
            return self.levels.get(f"index {node.referenced.key}") == Level.THREAD
        if node.kind == "CALL_EXPR" and node.spelling == "thread_rank":
            return "ncclCoopCta" in node.expressions[0].strip().canonical_type or any(
                "Cta" in part.canonical_type for part in node.walk()
            )
        if node.kind == "BINARY_OPERATOR" and node.operator in ("%", "&", "/", ">>") and len(kids) == 2:
            return self._is_thread_index(kids[0]) and self.constant(kids[1]) is not None
        return False

    def _comparison(self, operator: str, kids: list[Node]) -> bool:
        left, right = kids
        if self._is_thread_index(right):
            left, right = right, left
            operator = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}.get(operator, operator)
        if not self._is_thread_index(left) or self.level(right) != Level.UNIFORM:
            return False
        bound = self.constant(right)
        direct = left.strip().kind != "BINARY_OPERATOR"
        if operator in ("==", "!="):
            return bound is None or bound >= 0
        if bound is None or not direct:
            return False
        first_other = {"<": bound, ">=": bound, "<=": bound + 1, ">": bound + 1}[operator]
        return 0 < first_other < self.block if self.block is not None else first_other == 1

    def guard(self, condition: Node, *, loop: bool = False) -> Guard:
        level = self.level(condition)
        return Guard(
            condition.text, level, level >= Level.WARP and not loop and self.certain(condition), loop
        )

    def is_index(self, node: Node) -> bool:
        """Whether a variable initialised with this expression is the thread's index in its block."""
        return self._is_thread_index(node)
