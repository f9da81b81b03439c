"""Integer expressions of ``workload.toml`` (shapes, allowed ranks), evaluated over a closed set of names.

The text is parsed with :mod:`ast` and walked; nothing of it is ever executed as Python. Allowed are integer
constants, names, ``+ - * // % **``, unary minus, comparisons, ``and or not``, ``a if c else b`` and the
functions ``min max abs``.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from cuco.errors import UsageError

Number = int | float

#: Larger exponents and results are refused: a shape never needs them and they could exhaust memory.
_LARGEST = 2**62

_BINARY: dict[type[ast.operator], Callable[[Number, Number], Number]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Div: operator.truediv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
}
_COMPARE: dict[type[ast.cmpop], Callable[[Number, Number], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_FUNCTIONS: dict[str, Callable[..., Number]] = {"min": min, "max": max, "abs": abs}


@dataclass(frozen=True)
class Expression:
    """A parsed expression and the key of the file it stands under, which every error names."""

    text: str
    where: str

    def evaluate(self, names: Mapping[str, Number]) -> Number:
        """Value of the expression; UsageError if it does not parse, names something unknown or cannot be
        computed.
        """
        try:
            tree = ast.parse(self.text, mode="eval")
        except (SyntaxError, ValueError):
            raise UsageError(f"{self.where}: '{self.text}' is not an expression", fix=_SYNTAX_FIX) from None
        try:
            return _walk(tree.body, names)
        except _Refused as refused:
            raise UsageError(f"{self.where}: '{self.text}': {refused}", fix=_fix(names)) from None
        except ZeroDivisionError:
            raise UsageError(f"{self.where}: '{self.text}' divides by zero", fix=_values(names)) from None

    def integer(self, names: Mapping[str, Number], *, least: int = 0) -> int:
        """Value as an integer of at least ``least``."""
        value = self.evaluate(names)
        if isinstance(value, float):
            raise UsageError(
                f"{self.where}: '{self.text}' gives {value}, not an integer", fix="Use // to divide."
            )
        if value < least:
            raise UsageError(
                f"{self.where}: '{self.text}' gives {int(value)}, below {least}", fix=_values(names)
            )
        return int(value)


class _Refused(Exception):
    pass


_SYNTAX_FIX = "Write integers, names, + - * // %, comparisons, 'a if c else b', min, max, abs."


def _fix(names: Mapping[str, Number]) -> str:
    return "Known names: " + ", ".join(sorted(names)) + "."


def _values(names: Mapping[str, Number]) -> str:
    return "With " + ", ".join(f"{name}={value}" for name, value in sorted(names.items())) + "."


def _walk(node: ast.expr, names: Mapping[str, Number]) -> Number:
    match node:
        case ast.Constant(value=bool() | int() | float() as value):
            return value
        case ast.Name(id=name):
            if name not in names:
                raise _Refused(f"'{name}' is unknown")
            return names[name]
        case ast.BinOp(left=left, op=op, right=right):
            return _binary(op, _walk(left, names), _walk(right, names))
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_walk(operand, names)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return not _walk(operand, names)
        case ast.BoolOp(op=op, values=values):
            return _boolean(op, values, names)
        case ast.Compare(left=left, ops=ops, comparators=comparators):
            return _compare(left, ops, comparators, names)
        case ast.IfExp(test=test, body=body, orelse=orelse):
            return _walk(body if _walk(test, names) else orelse, names)
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in _FUNCTIONS and args:
            values_ = [_walk(argument, names) for argument in args]
            if name == "abs" and len(values_) != 1 or name != "abs" and len(values_) < 2:
                raise _Refused(f"{name} has the wrong number of arguments")
            return _FUNCTIONS[name](*values_)
    raise _Refused(f"'{ast.unparse(node)}' is not allowed here")


def _binary(op: ast.operator, left: Number, right: Number) -> Number:
    function = _BINARY.get(type(op))
    if function is None:
        raise _Refused("only + - * / // % ** are allowed")
    if isinstance(op, ast.Pow) and (abs(right) > 64 or abs(left) > 2**31):
        raise _Refused("the power is too large")
    value = function(left, right)
    if isinstance(value, complex) or abs(value) > _LARGEST:
        raise _Refused("the value is too large")
    return value


def _boolean(op: ast.boolop, values: list[ast.expr], names: Mapping[str, Number]) -> Number:
    value: Number = 0
    for node in values:
        value = _walk(node, names)
        if bool(value) != isinstance(op, ast.And):
            return value
    return value


def _compare(
    left: ast.expr, ops: list[ast.cmpop], comparators: list[ast.expr], names: Mapping[str, Number]
) -> bool:
    value = _walk(left, names)
    for op, node in zip(ops, comparators, strict=True):
        function = _COMPARE.get(type(op))
        if function is None:
            raise _Refused("only == != < <= > >= are allowed")
        other = _walk(node, names)
        if not function(value, other):
            return False
        value = other
    return True
