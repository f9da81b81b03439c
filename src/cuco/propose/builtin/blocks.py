"""Evolve blocks in the user's part of a candidate: around the step's launches and calls, and around kernels.

The blocks that the user drew stay as they are and get names; what is rewritten outside of them gets blocks of
its own. They depend on the program alone, not on the design of its edges, so that the frozen text of all
candidates of one program is the same and blocks can change hands between them. Blocks are named after the
function that they are in."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from cuco.errors import UsageError
from cuco.propose.protocol import ProposalRefused
from cuco.source import evolve
from cuco.source.edit import CallSpan, Edit, LaunchSpan, SourceFile

#: Nothing that runs outside of a step needs rewriting.
_SETUP = ("cuco_prepare", "cuco_finish")
_GROUPS = ("GroupStart", "GroupEnd")


@dataclass(frozen=True)
class Region:
    """Whole lines of the main file, bytes [start, end), in or right behind function ``name``."""

    start: int
    end: int
    name: str

    def meets(self, other: Region) -> bool:
        return self.start < other.end and other.start < self.end

    def covers(self, start: int, end: int) -> bool:
        return self.start <= start and end <= self.end


@dataclass(frozen=True)
class Blocks:
    """The edits that draw and name the blocks of a source, and how many blocks there are then.

    ``edits`` go behind what is inserted in front of lines and before what changes inside them. ``apart``:
    block names of kernels that hold a block of the user's; what stands for them needs a block of its own."""

    edits: tuple[Edit, ...]
    apart: Mapping[str, str]
    count: int

    def stand_ins(self, kernel: str, text: str) -> str:
        """What is inserted behind a kernel: ``text``, in a block if the kernel's own does not take it in."""
        if kernel not in self.apart:
            return text
        return f"// {evolve.START} {self.apart[kernel]}\n{text}// {evolve.END}\n"

    def check(self, text: str) -> None:
        """Raises UsageError if the finished ``text`` does not have these blocks."""
        found = evolve.parse(text).blocks
        if sum(not span.name.startswith("cuco_gen.") for span in found) != self.count:
            raise UsageError(
                "an evolve block would begin or end inside a comment or a string",
                fix="Begin statements that launch kernels or call NCCL on lines of their own",
            )


def draw(source: SourceFile, edges: Sequence[tuple[str, int]], kernels: Iterable[str]) -> Blocks:
    """The blocks of a source whose calls stand at ``edges`` (file, offset) and which launches ``kernels``.

    Raises UsageError for malformed markers and ProposalRefused where the user's blocks leave no room for what
    is generated.
    """
    own = _own(source)
    _room(source, own)
    whole, apart = _kernels(source, own, set(kernels))
    drawn = whole + _steps(source, own, set(edges), set(kernels))
    names = _Names(marker.name for marker in _markers(source))
    ends, starts, named = [], [], []
    for region in sorted([*own, *drawn], key=lambda one: one.start):
        if region in own:
            named += _named(source, region, names)
            continue
        indent = source.indent(_first_letter(source, region))
        name = names.new(region.name)
        last = source.text.encode()[: region.end]
        newline = "" if not last or last.endswith(b"\n") else "\n"
        ends.append(Edit.insert(region.end, f"{newline}{indent}// {evolve.END}\n"))
        starts.append(Edit.insert(region.start, f"{indent}// {evolve.START} {name}\n"))
    own_blocks = {kernel: names.new(kernel) for kernel in apart}
    return Blocks((*ends, *starts, *named), own_blocks, len(own) + len(drawn) + len(apart))


class _Names:
    def __init__(self, taken: Iterable[str]) -> None:
        self._taken = set(taken)

    def new(self, wanted: str) -> str:
        """``wanted``, or with a number where it is taken."""
        tries: Iterator[str] = iter([wanted, *(f"{wanted}_{n}" for n in range(2, len(self._taken) + 3))])
        name = next(one for one in tries if one not in self._taken)
        self._taken.add(name)
        return name


def _markers(source: SourceFile) -> list[evolve.Marker]:
    try:
        evolve.parse(source.text)
    except UsageError as error:
        raise UsageError(f"{source.path}, {error.message}", fix=error.fix) from None
    return list(evolve.markers(source.text))


def _own(source: SourceFile) -> list[Region]:
    """The user's blocks, marker lines included."""
    found = _markers(source)
    pairs = zip(found[::2], found[1::2], strict=True)
    return [
        Region(at, _bytes(source, end.end), _function_at(source, at))
        for start, end in pairs
        for at in [_bytes(source, start.start)]
    ]


def _bytes(source: SourceFile, characters: int) -> int:
    return len(source.text[:characters].encode())


def _function_at(source: SourceFile, offset: int) -> str:
    around = [f for f in source.functions if f.file == source.main and f.span.start <= offset < f.span.end]
    return around[-1].name if around else "block"


def _room(source: SourceFile, own: Sequence[Region]) -> None:
    """What is generated is frozen, so the places where it goes may not lie in a block."""
    places = [("includes", source.after_includes)] + [
        (f.name, f.name_span.start) for f in source.functions if f.name in (*_SETUP, "cuco_launch")
    ]
    for region in own:
        for what, at in places:
            if region.start < at < region.end:
                line = 1 + source.text.encode()[: region.start].count(b"\n")
                raise ProposalRefused(
                    f"the evolve block that begins here holds the {what}, where frozen code has to be added",
                    line=line,
                    fix="Begin it behind the includes and inside a function",
                )


def _named(source: SourceFile, region: Region, names: _Names) -> list[Edit]:
    marker = next(one for one in evolve.markers(source.text) if _bytes(source, one.start) == region.start)
    if marker.name:
        return []
    return [Edit.insert(_bytes(source, marker.word_end), f" {names.new(region.name)}")]


def _kernels(source: SourceFile, own: Sequence[Region], kernels: set[str]) -> tuple[list[Region], list[str]]:
    """A block per kernel, with room for what stands for it, and the kernels that cannot have one."""
    found, apart = [], []
    for function in source.kernels:
        if function.file != source.main or function.name not in kernels:
            continue
        whole = Region(source.line_start(source.before(function)), source.after(function), function.name)
        if any(one.covers(whole.start, whole.end) for one in own):
            continue
        if any(map(whole.meets, own)):
            apart.append(function.name)
        else:
            found.append(whole)
    return found, apart


def _steps(
    source: SourceFile, own: Sequence[Region], edges: set[tuple[str, int]], kernels: set[str]
) -> list[Region]:
    """Per function the lines from its first launch or call to its last, apart from the user's own blocks."""
    by_function: dict[str, list[Region]] = {}
    places: list[CallSpan | LaunchSpan] = [*source.all_calls, *source.launches]
    for one in sorted(places, key=lambda place: place.statement.start):
        if isinstance(one, LaunchSpan):
            wanted = one.kernel in kernels and one.function not in _SETUP
        else:
            at = {(one.file, span.start) for span in (one.call, one.statement)}
            wanted = one.op in _GROUPS or not edges.isdisjoint(at)
        if one.file != source.main or not wanted:
            continue
        region = _lines(source, one, own)
        if region is not None:
            by_function.setdefault(one.function, []).append(region)
    return [joined for regions in by_function.values() for joined in _joined(regions, own)]


def _lines(source: SourceFile, one: CallSpan | LaunchSpan, own: Sequence[Region]) -> Region | None:
    """The lines of the outermost statement around a call that meets none of the user's blocks; None inside
    one."""
    found = None
    for start, end in (one.statement, *one.enclosing):
        region = Region(source.line_start(start), source.line_end(end), one.function)
        if any(map(region.meets, own)):
            break
        found = region
    return found


def _joined(regions: Sequence[Region], own: Sequence[Region]) -> list[Region]:
    found = [regions[0]]
    for region in regions[1:]:
        hull = Region(found[-1].start, max(found[-1].end, region.end), region.name)
        if any(map(hull.meets, own)):
            found.append(region)
        else:
            found[-1] = hull
    return found


def _first_letter(source: SourceFile, region: Region) -> int:
    line = source.text.encode()[region.start : region.end]
    return region.start + len(line) - len(line.lstrip())
