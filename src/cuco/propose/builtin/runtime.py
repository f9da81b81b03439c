"""Assembles the code that a generated candidate carries: the exchange runtime, made for its edges.

The fragments are the ``.cuh`` files in ``templates``; each says what it is for. Only those that the edges
need are put together, behind the constants of every edge."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files

from cuco.propose.builtin.config import EdgeConfig
from cuco.space.dimensions import Backend, Placement, Sync

BEGIN = "// ==== cuco: device-initiated exchange, generated ===="
END = "// ==== cuco: end of generated exchange ===="

#: Includes of the generated code; the user's own stay where they are.
INCLUDES = (
    "<nccl_device.h>",
    "<cuda/atomic>",
    "<cuda_bf16.h>",
    "<cuda_fp16.h>",
    "<functional>",
    "<utility>",
    "<vector>",
)

#: C++ type of every NCCL data type that a reduction may be generated for.
REDUCE_TYPES = {
    "int8": ("ncclInt8", "int8_t"),
    "uint8": ("ncclUint8", "uint8_t"),
    "int32": ("ncclInt32", "int32_t"),
    "uint32": ("ncclUint32", "uint32_t"),
    "int64": ("ncclInt64", "int64_t"),
    "uint64": ("ncclUint64", "uint64_t"),
    "float16": ("ncclFloat16", "__half"),
    "bfloat16": ("ncclBfloat16", "__nv_bfloat16"),
    "float32": ("ncclFloat32", "float"),
    "float64": ("ncclFloat64", "double"),
}
#: Chunk counters per edge: enough for one buffer's pieces.
MAX_CHUNKS = 512


def _template(name: str) -> str:
    return files("cuco.propose.builtin").joinpath("templates", f"{name}.cuh").read_text("utf-8")


def joint_backend(edges: Sequence[EdgeConfig]) -> Backend:
    """What the device communicator must offer: one backend if all edges agree, else both."""
    backends = {edge.backend for edge in edges}
    return backends.pop() if len(backends) == 1 else Backend.HYBRID


def constants(edges: Sequence[EdgeConfig], *, staging: int) -> str:
    """Enumerations, limits and one struct per edge. ``staging``: see ``render``."""
    head = [
        "enum class Backend { Lsa, Gin, Hybrid };",
        "enum class Sync { Barrier, Signal, SignalShadow };",
        "enum class Placement { Deferred, StreamSplit, Pipelined, Persistent, TileFused };",
        "enum class Issuer { Thread, Warp, WarpSpan, Tile, Cta };",
        "// What the communicator offers.",
        f"constexpr Backend kBackends = Backend::{joint_backend(edges).value.capitalize()};",
        f"constexpr bool kBarriers = {'true' if any(e.sync is Sync.BARRIER for e in edges) else 'false'};",
        f"constexpr int kEdges = {max(e.index for e in edges) + 1};",
        "// Concurrent transfers per pair of ranks.",
        f"constexpr int kSlots = {max(e.slot_base + e.slots for e in edges)};",
        f"constexpr int kMaxCtas = {max(e.ctas for e in edges)};",
        f"constexpr int kMaxContexts = {max(e.contexts for e in edges)};",
        f"constexpr int kMaxChunks = {MAX_CHUNKS};  // per edge with a producer",
        "// Space for reductions: 0 none, 1 as much as the largest buffer, 2 that per rank.",
        f"constexpr int kStaging = {staging};",
        "",
    ]
    return "\n".join(head) + "\n".join(edge.render() for edge in edges)


def render(edges: Sequence[EdgeConfig], *, reduce_types: Sequence[str] = (), staging: int = 0) -> str:
    """The generated namespace ``cuco_gen`` for ``edges``, to stand behind the includes of a candidate.

    ``reduce_types``: data types (contract names) over which the candidate reduces. ``staging``: space for
    peers' contributions, 0 none, 1 as much as the largest buffer, 2 as much per rank (reductions to a root).
    """
    parts = ["plan", "lsa", "gin", "exchange", "host", "calls"]
    if reduce_types:
        parts.append("reduce")
    placements = {edge.placement for edge in edges}
    if placements & {Placement.PIPELINED, Placement.PERSISTENT, Placement.TILE_FUSED}:
        parts += ["produce", "merged", "fused"]
    cases = "\n".join(
        f"    case {nccl}: return launch_reduce<{cxx}>(out, own, n, stride, op, stream);"
        for nccl, cxx in (REDUCE_TYPES[name] for name in dict.fromkeys(reduce_types))
    )
    body = "\n".join(_template(part) for part in parts).replace("@REDUCE_CASES@", cases)
    includes = "\n".join(f"#include {name}" for name in INCLUDES)
    inside = f"{constants(edges, staging=staging)}\n{body}\n"
    return f"{BEGIN}\n{includes}\n\nnamespace cuco_gen {{\n{inside}}}  // namespace cuco_gen\n"


_ENTRY_POINTS = """
// The contract's entry points: the user's own, between opening and closing what they communicate through.
extern "C" int cuco_prepare(const cuco_ctx *ctx, void **state) {{
  if (int code = cuco_gen::open(ctx)) return code;
  if (int code = user_cuco_prepare(&cuco_gen::rt.shadow, state)) return code;
{inherit}  return cuco_gen::connect();
}}

extern "C" int cuco_launch(const cuco_ctx *, void *state, cudaStream_t stream) {{
  if (int code = user_cuco_launch(&cuco_gen::rt.shadow, state, stream)) return code;
  return cuco_gen::settle(stream);
}}

extern "C" int cuco_finish(const cuco_ctx *, void *state) {{
  if (int code = user_cuco_finish(&cuco_gen::rt.shadow, state)) return code;
  return cuco_gen::close();
}}
"""


def entry_points(wrapped: Sequence[tuple[str, str]]) -> str:
    """The entry points; ``wrapped``: (user's kernel, kernel that stands for it), which inherits its
    attributes."""
    inherit = "".join(
        f"  if (int code = cuco_gen::inherit((const void *){kernel}, (const void *){wrapper})) return code;\n"
        for kernel, wrapper in wrapped
    )
    return _ENTRY_POINTS.format(inherit=inherit)
