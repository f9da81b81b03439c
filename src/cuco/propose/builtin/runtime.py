"""Assembles the code that a generated candidate carries: the exchange runtime, made for its edges.

The fragments are the ``.cuh`` files in ``templates``; each says what it is for. Only those that the edges
need are put together, behind the constants of every edge. Evolve blocks are around what may be rewritten (the
protocol on the device, what is launched for an edge), and not around what verification leans on: the control
window's layout, windows and communicator, guards, entry points."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.resources import files

from cuco.errors import UsageError
from cuco.propose.builtin.config import EdgeConfig
from cuco.source import evolve
from cuco.space import Directive, parse_directive
from cuco.space.dimensions import Placement

BEGIN = "// ==== cuco: device-initiated exchange, generated ===="
END = "// ==== cuco: end of generated exchange ===="
#: What the names of evolve blocks in generated code begin with; those in the user's own code do not.
BLOCK = "cuco_gen."
_DESIGN = ".design"

#: Includes of the generated code; the user's own stay where they are.
INCLUDES = (
    "<nccl_device.h>",
    "<cuda/atomic>",
    "<cuda_bf16.h>",
    "<cuda_fp16.h>",
    "<functional>",
    "<initializer_list>",
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


def block(name: str, text: str, indent: str = "") -> str:
    """``text`` (whole lines, or "") as an evolve block of the generated code."""
    return f"{indent}// {evolve.START} {BLOCK}{name}\n{text}{indent}// {evolve.END}\n"


def emptied(text: str, keep: Callable[[str], bool] = lambda name: False) -> str:
    """``text`` without the contents of its generated evolve blocks, those that ``keep`` names excepted."""
    document = evolve.parse(text)
    names = [span.name for span in document.blocks if span.name.startswith(BLOCK)]
    return document.replace_all({name: "" for name in names if not keep(name)}).text


def infrastructure(text: str) -> str:
    """Stage A of a candidate: what is frozen, and the designs, which say how much room it needs."""
    return emptied(text, keep=lambda name: name.endswith(_DESIGN))


@dataclass(frozen=True)
class Written:
    """One exchange: the constants of its phases, the functions that stand for its calls, and its design in
    words."""

    phases: tuple[EdgeConfig, ...]
    functions: str
    design: str


def design_comment(edges: Sequence[str], directive: Directive) -> str:
    """The lines that say which design an exchange's code follows; ``designs_in`` reads them back."""
    return "".join(f"// {edge}: {directive.key()}\n" for edge in edges)


def designs_in(text: str) -> dict[str, Directive]:
    """Directives by edge id, as a candidate of this proposer states them; nothing in another's text."""
    try:
        blocks = evolve.parse(text).blocks
    except UsageError:
        return {}
    found: dict[str, Directive] = {}
    for span in blocks:
        if span.name.startswith(BLOCK) and span.name.endswith(_DESIGN):
            for edge, key in re.findall(r"^// (\S+): (.*)$", span.text, re.MULTILINE):
                with suppress(UsageError):
                    found[edge] = parse_directive(key)
    return found


def constants(found: Sequence[Written], *, staging: int) -> str:
    """Enumerations, one struct per edge, and the limits that follow from them. ``staging``: see ``render``.

    The limits are computed by the compiler, so that they are frozen and yet right for any design."""
    head = [
        "enum class Backend { Lsa, Gin, Hybrid };",
        "enum class Sync { Barrier, Signal, SignalShadow };",
        "enum class Placement { Deferred, StreamSplit, Pipelined, Persistent, TileFused };",
        "enum class Issuer { Thread, Warp, WarpSpan, Tile, Cta };",
        "",
    ]
    edges = [edge for one in found for edge in one.phases]
    barriers = ", ".join(f"{edge.name}::kSync == Sync::Barrier" for edge in edges)
    designs = [
        block(f"edge{edge.index}{_DESIGN}", (one.design if edge is one.phases[0] else "") + edge.render())
        for one in found
        for edge in one.phases
    ]

    def each(member: str) -> str:
        return ", ".join(f"{edge.name}::{member}" for edge in edges)

    tail = [
        "",
        "constexpr Backend joint(std::initializer_list<Backend> all) {",
        "  for (Backend one : all) if (one != *all.begin()) return Backend::Hybrid;",
        "  return *all.begin();",
        "}",
        "constexpr int largest(std::initializer_list<int> all) {",
        "  int found = 0;",
        "  for (int one : all) found = one > found ? one : found;",
        "  return found;",
        "}",
        "// What the communicator offers.",
        f"constexpr Backend kBackends = joint({{{each('kBackend')}}});",
        f"constexpr bool kBarriers = largest({{{barriers}}});",
        f"constexpr int kEdges = {max(e.index for e in edges) + 1};",
        "// Concurrent transfers per pair of ranks.",
        f"constexpr int kSlots = {max(e.slot_base + e.slots for e in edges)};",
        f"constexpr int kMaxCtas = largest({{{each('kCtas')}}});",
        f"constexpr int kMaxContexts = largest({{{each('kContexts')}}});",
        f"constexpr int kMaxChunks = {MAX_CHUNKS};  // per edge with a producer",
        "// Space for reductions: 0 none, 1 as much as the largest buffer, 2 that per rank.",
        f"constexpr int kStaging = {staging};",
        "",
    ]
    return "\n".join(head) + "\n".join(designs) + "\n".join(tail)


def render(
    found: Sequence[Written],
    *,
    reduce_types: Sequence[str] = (),
    staging: int = 0,
    kernels: str = "",
) -> str:
    """The generated namespace ``cuco_gen``, to stand behind the includes of a candidate.

    ``reduce_types``: data types (contract names) over which the candidate reduces. ``staging``: space for
    peers' contributions, 0 none, 1 as much as the largest buffer, 2 as much per rank (reductions to a root).
    ``kernels``: what stands for kernels of headers.

    What lies outside the evolve blocks depends on the program alone, not on the design of its edges.
    """
    parts = [_template(part) for part in ("plan", "lsa", "gin", "exchange", "host", "calls")]
    if reduce_types:
        parts.append(_template("reduce"))
    placements = {edge.placement for one in found for edge in one.phases}
    overlap = [_template(part) for part in ("produce", "merged", "fused")]
    fused = placements & {Placement.PIPELINED, Placement.PERSISTENT, Placement.TILE_FUSED}
    parts += overlap if fused else map(emptied, overlap)
    cases = "\n".join(
        f"    case {nccl}: return launch_reduce<{cxx}>(out, own, n, stride, op, stream);"
        for nccl, cxx in (REDUCE_TYPES[name] for name in dict.fromkeys(reduce_types))
    )
    parts += [block(f"edge{one.phases[0].index}", one.functions) for one in found]
    body = "\n".join(parts).replace("@REDUCE_CASES@", cases)
    includes = "\n".join(f"#include {name}" for name in INCLUDES)
    inside = f"{constants(found, staging=staging)}\n{body}"
    return (
        f"{BEGIN}\n{includes}\n\nnamespace cuco_gen {{\n{inside}}}  // namespace cuco_gen\n"
        f"{block('kernels', kernels)}{END}\n"
    )


_ENTRY_POINTS = """
// The contract's entry points: the user's own, between opening and closing what they communicate through.
extern "C" int cuco_prepare(const cuco_ctx *ctx, void **state) {{
  if (int code = cuco_gen::open(ctx)) return code;
  if (int code = user_cuco_prepare(&cuco_gen::rt.shadow, state)) return code;
{kernels}  return cuco_gen::connect();
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
    return _ENTRY_POINTS.format(kernels=block("attributes", inherit, "  "))
