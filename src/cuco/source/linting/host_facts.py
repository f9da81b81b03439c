"""What host code asks of the device communicator, which kernels it launches how, and what cuco_launch
reaches."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from cuco.source.clang_ast import LOOPS, Node

_REQUIREMENTS = ("ncclDevCommRequirements", "ncclDevCommRequirements_t")
_INITIALIZER = "NCCL_DEV_COMM_REQUIREMENTS_INITIALIZER"


@dataclass(eq=False)
class Requirements:
    """One requirements variable. ``fields`` have every value assigned, None for one that is not constant."""

    name: str
    node: Node
    proper: bool
    fields: dict[str, list[int | None]] = field(default_factory=dict)
    certain: bool = True

    def value(self, name: str) -> tuple[int | None, bool]:
        """The field's value, and whether it is certain; a field never assigned is 0."""
        found = self.fields.get(name, [0])
        if len(found) == 1 and found[0] is not None and self.certain:
            return found[0], True
        known = [one for one in found if one is not None]
        return (max(known), False) if known and len(known) == len(found) else (None, False)


def requirements(functions: Iterable[Node]) -> list[Requirements]:
    """The requirements variables of host functions."""
    found: list[Requirements] = []
    for function in functions:
        declared: dict[str, Requirements] = {}
        for part in function.walk():
            if part.kind == "VAR_DECL" and _type_name(part) in _REQUIREMENTS:
                declared[part.key] = Requirements(part.spelling, part, _is_proper(part))
        if declared:
            _assignments(function, declared)
        found += declared.values()
    return found


def _type_name(node: Node) -> str:
    return node.canonical_type.removeprefix("struct ")


def _is_proper(variable: Node) -> bool:
    """Whether the macro, a copy or a function's result initialises the variable."""
    values = [child for child in variable.expressions if child.kind.endswith(("EXPR", "LITERAL"))]
    if not values:
        return False
    inner = values[-1].strip()
    if inner.kind in ("DECL_REF_EXPR", "MEMBER_REF_EXPR"):
        return True
    if inner.kind == "CALL_EXPR" and inner.spelling not in _REQUIREMENTS:
        return True
    start = inner.expansion[0]
    return variable.unit.macro_at(variable.file, start) == _INITIALIZER or any(
        variable.unit.macro_at(part.file, part.expansion[0]) == _INITIALIZER for part in inner.walk()
    )


def _assignments(function: Node, declared: dict[str, Requirements]) -> None:
    for part in function.walk():
        if part.kind == "CALL_EXPR":
            _passed_on(part, declared)
        sides = part.arguments if part.spelling == "operator=" else part.expressions
        if (part.operator != "=" and part.spelling != "operator=") or len(sides) != 2:
            continue
        target, value = sides[0].strip(), sides[1]
        owner = _owner(target, declared)
        if target.kind == "DECL_REF_EXPR" and owner is not None:
            owner.proper = owner.proper or part.unit.macro_at(value.file, value.expansion[0]) == _INITIALIZER
        if target.kind == "MEMBER_REF_EXPR" and owner is not None:
            known = value.constant
            if _conditional(part):
                owner.certain = False
            owner.fields.setdefault(target.member_name, []).append(known)


def _passed_on(call: Node, declared: dict[str, Requirements]) -> None:
    """A requirements variable given by address to other functions: memset spoils it, unknown ones may set
    fields."""
    if call.spelling in ("ncclDevCommCreate", ""):
        return
    for argument in call.arguments:
        inner = argument.strip()
        if inner.operator != "&":
            continue
        owner = _owner(inner.expressions[0].strip(), declared)
        if owner is None:
            continue
        if call.spelling in ("memset", "bzero", "__builtin_memset"):
            owner.proper = False
        else:
            owner.certain = False


def _owner(node: Node, declared: dict[str, Requirements]) -> Requirements | None:
    if node.kind == "MEMBER_REF_EXPR" and node.expressions:
        return _owner(node.expressions[0].strip(), declared)
    if node.kind == "DECL_REF_EXPR" and node.referenced is not None:
        return declared.get(node.referenced.key)
    return None


def _conditional(node: Node) -> bool:
    parent = node.parent
    while parent is not None:
        if parent.kind in (*LOOPS, "IF_STMT", "CONDITIONAL_OPERATOR", "SWITCH_STMT"):
            return True
        parent = parent.parent
    return False


def reached_from(entry: Node, own_files: frozenset[str]) -> list[Node]:
    """An entry point and the user's functions that it may come to."""
    queue, found = [entry], {entry.place: entry}
    while queue:
        for part in queue.pop(0).walk():
            if part.kind not in ("CALL_EXPR", "DECL_REF_EXPR") or part.referenced is None:
                continue
            body = part.referenced.definition
            if body is not None and body.file in own_files and body.place not in found:
                if any(child.kind == "CUDAGLOBAL_ATTR" for child in body.children):
                    continue
                found[body.place] = body
                queue.append(body)
    return list(found.values())
