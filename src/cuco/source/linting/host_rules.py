"""Rules over host code: requirements, windows, and what cuco_launch may not call."""

from __future__ import annotations

from collections.abc import Sequence

from cuco.source.clang_ast import Node
from cuco.source.linting.findings import Findings
from cuco.source.linting.host_facts import Requirements, reached_from
from cuco.source.trail import Trail
from cuco.source.values import Value

_ALIGNMENT = 4096
_NOT_FOR_WINDOWS = frozenset(
    {
        "cudaMalloc",
        "cudaMallocManaged",
        "cudaMallocAsync",
        "cudaMallocPitch",
        "cudaMallocHost",
        "cudaHostAlloc",
        "cudaMallocFromPoolAsync",
        "thrust::device_vector",
    }
)
_GIN_FIELDS = (
    "ginSignalCount",
    "ginCounterCount",
    "barrierCount",
    "railGinBarrierCount",
    "worldGinBarrierCount",
)
_NONE, _RAIL = 0, 2

_SYNCHRONISES = "it waits for the device, and a step is asynchronous"
_ALLOCATES = "it synchronises the device; allocate in cuco_prepare"
_COLLECTIVE = "it is collective and blocks the host; do it in cuco_prepare"
_THREADS = "a step creates no threads"
FORBIDDEN: dict[str, str] = {
    **dict.fromkeys(
        (
            "cudaDeviceSynchronize",
            "cudaStreamSynchronize",
            "cudaEventSynchronize",
            "cudaCtxSynchronize",
            "cudaMemcpy",
            "cudaMemcpy2D",
            "cudaMemcpyToSymbol",
            "cudaMemcpyFromSymbol",
            "cudaDeviceReset",
            "cudaThreadSynchronize",
        ),
        _SYNCHRONISES,
    ),
    **dict.fromkeys(
        (
            "cudaMalloc",
            "cudaFree",
            "cudaMallocManaged",
            "cudaMallocHost",
            "cudaFreeHost",
            "cudaHostAlloc",
            "cudaHostRegister",
            "cudaHostUnregister",
            "cudaMallocPitch",
            "cudaMallocArray",
            "ncclMemAlloc",
            "ncclMemFree",
        ),
        _ALLOCATES,
    ),
    **dict.fromkeys(
        (
            "ncclCommWindowRegister",
            "ncclCommWindowDeregister",
            "ncclDevCommCreate",
            "ncclDevCommDestroy",
            "ncclCommInitRank",
            "ncclCommInitAll",
            "ncclCommSplit",
            "ncclCommFinalize",
            "ncclCommDestroy",
            "ncclCommRegister",
            "ncclCommInitRankConfig",
        ),
        _COLLECTIVE,
    ),
    **dict.fromkeys(("pthread_create", "async", "fork", "thread", "jthread"), _THREADS),
}
_STANDARD_THREADS = frozenset({"async", "thread", "jthread"})


def check_host(
    found: Findings,
    wanted: Sequence[Requirements],
    trail: Trail,
    hosts: Sequence[Node],
    own_files: frozenset[str],
    uses_gin: bool,
) -> None:
    """All host rules."""
    for one in wanted:
        if not one.proper:
            found.add("requirements-initializer", one.node, name=one.name)
        _connection(found, one, uses_gin)
    for node, value, address in trail.windows:
        _window(found, node, value, address)
    launch = next((one for one in hosts if one.spelling == "cuco_launch"), None)
    if launch is not None:
        _forbidden(found, launch, own_files)


def _connection(found: Findings, one: Requirements, uses_gin: bool) -> None:
    connection, certain = one.value("ginConnectionType")
    forced = one.value("ginForceEnable")[0] not in (0, None) or "ginForceEnable" in one.fields
    asked = [name for name in _GIN_FIELDS if one.fields.get(name, [0]) != [0]]
    if connection == _NONE and asked and not forced:
        constant = all(value is not None and value > 0 for value in one.fields[asked[0]])
        found.add("gin-connection", one.node, doubtful=not (certain and constant), field=asked[0])
    elif connection == _NONE and uses_gin and not forced and not asked:
        found.add("gin-connection", one.node, doubtful=True, field="a kernel's ncclGin")
    world, sure = one.value("worldGinBarrierCount")
    if connection == _RAIL and certain and sure and world:
        found.add("rail-world-barrier", one.node)


def _window(found: Findings, node: Node, value: Value, address: Node | None) -> None:
    wrong = [memory for memory in value.buffers if memory.allocator in _NOT_FOR_WINDOWS]
    if wrong and len(wrong) == len(value.buffers):
        found.add("window-memory", node, name=wrong[0].name, allocator=wrong[0].allocator)
    if address is None or not value.buffers:
        return
    offset = _constant_offset(address)
    if offset is not None and offset % _ALIGNMENT:
        found.add("window-alignment", node, bytes=offset, name=value.buffers[0].name)


def _constant_offset(address: Node) -> int | None:
    """Bytes that a constant adds to a pointer, as in ``(char *)p + 256``."""
    inner = address.strip()
    if inner.kind == "UNARY_OPERATOR" and inner.operator == "&" and inner.expressions:
        element = inner.expressions[0].strip()
        if element.kind == "ARRAY_SUBSCRIPT_EXPR":
            index = element.expressions[1].constant
            return index * element.cursor.type.get_size() if index is not None else None
        return None
    if inner.kind != "BINARY_OPERATOR" or inner.operator not in ("+", "-"):
        return None
    pointer, step = inner.expressions
    if not pointer.is_pointer:
        pointer, step = step, pointer
    count = step.constant
    size = int(pointer.cursor.type.get_canonical().get_pointee().get_size())
    base = _constant_offset(pointer)
    if count is None or size <= 0:
        return None
    return count * size + (base or 0)


def _forbidden(found: Findings, launch: Node, own_files: frozenset[str]) -> None:
    for function in reached_from(launch, own_files):
        for part in function.walk():
            if part.kind != "CALL_EXPR" or part.spelling not in FORBIDDEN:
                continue
            declared = part.referenced
            if declared is None or declared.file in own_files:
                continue
            if (
                part.spelling in _STANDARD_THREADS
                and "std" not in str(declared.cursor.semantic_parent.spelling)
                and (declared.kind != "CONSTRUCTOR")
            ):
                continue
            if declared.kind == "CONSTRUCTOR" and not part.arguments:
                continue
            found.add("launch-forbidden-call", part, call=part.spelling, why=FORBIDDEN[part.spelling])
