"""The names that a step's expressions need: buffers, ranks, parameters, and locals that are computed from
those."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from cuco.errors import UsageError
from cuco.source.analyze import own_functions
from cuco.source.clang_ast import Node
from cuco.source.edit import SourceFile

_RANK_NAMES = frozenset({"rank", "my_rank", "myRank", "myrank", "local_rank", "world_rank", "mpi_rank"})
_RANKS_NAMES = frozenset(
    {
        "ranks",
        "nranks",
        "nRanks",
        "n_ranks",
        "world_size",
        "total_ranks",
        "num_ranks",
        "nproc",
        "size_of_world",
        "num_gpus",
        "ndev",
    }
)
_RANK_CALLS = {
    "MPI_Comm_rank": "rank",
    "ncclCommUserRank": "rank",
    "MPI_Comm_size": "ranks",
    "ncclCommCount": "ranks",
}
_WORDS = frozenset(
    {
        "for",
        "while",
        "sizeof",
        "static_cast",
        "reinterpret_cast",
        "const_cast",
        "const",
        "unsigned",
        "signed",
        "int",
        "long",
        "short",
        "char",
        "float",
        "double",
        "void",
        "bool",
        "true",
        "false",
        "nullptr",
        "NULL",
        "auto",
        "struct",
        "typename",
        "__restrict__",
        "size_t",
        "std",
        "dim3",
        "half",
    }
)
_INTEGERS = frozenset({"INT", "UINT", "LONG", "ULONG", "LONGLONG", "ULONGLONG", "SHORT", "USHORT"})


def identifiers(text: str) -> list[str]:
    """The free names of an expression, in order: no member names, no strings, no numbers."""
    found: dict[str, None] = {}
    at, size = 0, len(text)
    while at < size:
        letter = text[at]
        if letter in "\"'":
            end = text.find(letter, at + 1)
            at = size if end < 0 else end + 1
        elif letter.isdigit():
            while at < size and (text[at].isalnum() or text[at] in ".'"):
                at += 1
        elif letter.isalpha() or letter == "_":
            end = at
            while end < size and (text[end].isalnum() or text[end] == "_"):
                end += 1
            before = text[:at].rstrip()
            if not before.endswith((".", "->", "::")):
                found.setdefault(text[at:end])
            at = end
        else:
            at += 1
    return list(found)


@dataclass
class Names:
    """How the names of one function reach ``cuco_launch``. ``parameters`` become the workload's."""

    source: SourceFile
    function: Node
    buffers: Mapping[str, str]
    kept: frozenset[str]
    parameters: dict[str, int | None] = field(default_factory=dict)
    declarations: dict[str, str] = field(default_factory=dict)
    ranks: dict[str, str] = field(default_factory=dict)
    _locals: dict[str, Node] = field(default_factory=dict)
    _given: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for part in self.function.walk():
            if part.kind in ("VAR_DECL", "PARM_DECL") and part.spelling:
                self._locals.setdefault(part.spelling, part)
            if part.kind == "CALL_EXPR" and part.spelling in _RANK_CALLS and len(part.arguments) == 2:
                self._given[part.arguments[1].text.lstrip("& ")] = _RANK_CALLS[part.spelling]

    def need(self, text: str, bound: Iterable[str] = ()) -> None:
        """Make every name of an expression available. UsageError for one that cannot be."""
        for name in identifiers(text):
            if (
                name in bound
                or name in _WORDS
                or name in self.kept
                or name.startswith(("nccl", "NCCL", "cuda"))
            ):
                continue
            self._resolve(name)

    def _resolve(self, name: str) -> None:
        if name in self.buffers or name in self.parameters or name in self.declarations or name in self.ranks:
            return
        meaning = self._given.get(name) or (
            "rank" if name in _RANK_NAMES else "ranks" if name in _RANKS_NAMES else None
        )
        if meaning:
            self.ranks[name] = meaning
            return
        declared = self._locals.get(name)
        if declared is None:
            raise UsageError(
                f"{self.source.path}: what {name} is in {self.function.spelling} is not known",
                fix="Wrap the step behind cuco.h by hand; docs/workloads.md shows how",
            )
        value = _initial(declared)
        if value is not None and _computable(value):
            self.need(value.text)
            self.declarations[name] = f"{declared.type} {name} = {value.text};"
        elif declared.cursor.type.get_canonical().kind.name in _INTEGERS:
            self.parameters[name] = value.constant if value is not None else None
        else:
            raise UsageError(
                f"{self.source.path}:{declared.line}: a workload cannot pass {name}, a {declared.type}",
                fix="Wrap the step behind cuco.h by hand; docs/workloads.md shows how",
            )

    def shape(self, text: str) -> str | None:
        """A count as an expression of ``workload.toml``; None where it is more than arithmetic over
        parameters."""
        expanded = self._expanded(text, 0)
        return expanded if expanded is not None and _is_arithmetic(expanded) else None

    def _expanded(self, text: str, depth: int) -> str | None:
        """Locals replaced by what they are computed from; ranks by the names of the format."""
        if depth > 8:
            return None
        result = _without_casts(text)
        for name in identifiers(result):
            if name in self.ranks:
                result = _replaced(result, name, self.ranks[name])
            elif name in self.declarations:
                value = _initial(self._locals[name])
                inner = self._expanded(value.text, depth + 1) if value is not None else None
                if inner is None:
                    return None
                result = _replaced(result, name, inner if inner.isalnum() else f"({inner})")
            elif name not in self.parameters:
                return None
        return result.replace("/", "//").replace("////", "//")


def _initial(declared: Node) -> Node | None:
    if declared.kind != "VAR_DECL":
        return None
    values = [child for child in declared.expressions if child.kind.endswith(("EXPR", "LITERAL", "OPERATOR"))]
    return values[-1] if values else None


def _computable(value: Node) -> bool:
    """Whether an initialiser is arithmetic over other names: no calls, no program arguments; plain constants
    are what a workload varies, so they become parameters."""
    if value.constant is not None and not any(part.kind == "DECL_REF_EXPR" for part in value.walk()):
        return False
    return all(
        part.kind not in ("CALL_EXPR", "LAMBDA_EXPR", "CXX_NEW_EXPR")
        and part.spelling not in ("argc", "argv")
        for part in value.walk()
    )


def _without_casts(text: str) -> str:
    for cast in ("(size_t)", "(int)", "(int64_t)", "(long)", "(unsigned)", "(long long)", "(uint64_t)"):
        text = text.replace(cast, "")
    return text


def _replaced(text: str, name: str, new: str) -> str:
    out, at = [], 0
    while at < len(text):
        found = text.find(name, at)
        if found < 0:
            break
        end = found + len(name)
        inside = (found and (text[found - 1].isalnum() or text[found - 1] in "_.")) or (
            end < len(text) and (text[end].isalnum() or text[end] == "_")
        )
        out.append(text[at:found] + (name if inside else new))
        at = end
    return "".join(out) + text[at:]


def _is_arithmetic(text: str) -> bool:
    return all(letter.isalnum() or letter in " _+-*/%()" for letter in text)


def enclosing_function(source: SourceFile, offset: int) -> Node:
    """The function of the main file that a byte lies in."""
    for node in own_functions(source.reading):
        if node.file == source.main and node.span[0] <= offset < node.span[1]:
            return node
    raise UsageError(
        f"{source.path}: the communication is not in a function of this file",
        fix="Name the file that makes the NCCL calls",
    )
