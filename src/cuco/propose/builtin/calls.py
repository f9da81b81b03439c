"""The functions that stand where NCCL's calls stood: same parameters, one set per exchange.

``ncclAllGather(send, recv, count, type, comm, stream)`` becomes ``cuco_gen::edge0_AllGather(send, ...)``:
only the callee's name changes in the user's source, so macros around calls, loops and error handling stay as
they were."""

from __future__ import annotations

from cuco.propose.builtin.config import EdgeConfig
from cuco.propose.builtin.exchange import Exchange
from cuco.space.dimensions import Placement

# Parameter lists as in nccl.h; the communicator is the candidate's own and goes unnamed.
_BUFFERS = "const void* send, void* recv, size_t count, ncclDataType_t type"
_END = "ncclComm_t, cudaStream_t stream"
_P2P = """\
inline ncclResult_t {name}_Send(const void* buffer, size_t count, ncclDataType_t type, int peer, ncclComm_t,
                                cudaStream_t stream) {{
  CUCO_GEN_TRY(add_send(buffer, count * element_bytes(type), peer));
  {after}
}}
inline ncclResult_t {name}_Recv(void* buffer, size_t count, ncclDataType_t type, int peer, ncclComm_t,
                                cudaStream_t stream) {{
  CUCO_GEN_TRY(add_recv(buffer, count * element_bytes(type), peer));
  {after}
}}
"""
_GROUP = """\
inline cudaStream_t {name}_stream;
inline ncclResult_t {name}_GroupStart() {{ return ncclSuccess; }}
{calls}inline ncclResult_t {name}_GroupEnd() {{ return {run}<{edge}>({name}_stream); }}
"""
_COLLECTIVES = {
    "AllGather": (
        f"{_BUFFERS}, {_END}",
        "collect_all_gather(send, recv, count * element_bytes(type))",
    ),
    "AlltoAll": (
        f"{_BUFFERS}, {_END}",
        "collect_all_to_all(send, recv, count * element_bytes(type))",
    ),
    "Broadcast": (
        f"{_BUFFERS}, int root, {_END}",
        "collect_broadcast(send, recv, count * element_bytes(type), root)",
    ),
    "Gather": (
        f"{_BUFFERS}, int root, {_END}",
        "collect_gather(send, recv, count * element_bytes(type), root)",
    ),
    "Scatter": (
        f"{_BUFFERS}, int root, {_END}",
        "collect_scatter(send, recv, count * element_bytes(type), root)",
    ),
}
_REDUCTIONS = {
    "AllReduce": (
        f"{_BUFFERS}, ncclRedOp_t op, {_END}",
        "all_reduce<{edge}, {second}>(send, recv, count, type, op, stream)",
    ),
    "ReduceScatter": (
        f"{_BUFFERS}, ncclRedOp_t op, {_END}",
        "reduce_scatter<{edge}>(send, recv, count, type, op, stream)",
    ),
    "Reduce": (
        f"{_BUFFERS}, ncclRedOp_t op, int root, {_END}",
        "reduce_to_root<{edge}>(send, recv, count, type, op, root, stream)",
    ),
}
#: ncclBcast sends and receives in one buffer.
_BCAST = """\
inline ncclResult_t {name}_Bcast(void* buffer, size_t count, ncclDataType_t type, int root, ncclComm_t comm,
                                 cudaStream_t stream) {{
  return {name}_Broadcast(buffer, buffer, count, type, root, comm, stream);
}}
"""


def run_function(edge: EdgeConfig) -> str:
    fused = (Placement.PIPELINED, Placement.PERSISTENT, Placement.TILE_FUSED)
    return "run_fused" if edge.placement in fused else "run_exchange"


def shims(exchange: Exchange, edge: EdgeConfig, second: EdgeConfig | None) -> str:
    """C++ of one exchange's functions, inside namespace ``cuco_gen``. ``second``: an all-reduce's all-gather
    phase."""
    name, run = f"edge{edge.index}", run_function(edge)
    if exchange.group is not None and not exchange.collective:
        calls = _P2P.format(name=name, after=f"{name}_stream = stream;\n  return ncclSuccess;")
        return _GROUP.format(name=name, calls=calls, run=run, edge=edge.name)
    if not exchange.collective:
        return _P2P.format(name=name, after=f"return {run}<{edge.name}>(stream);")
    text = ""
    for op in dict.fromkeys(exchange.ops):
        if op in _REDUCTIONS:
            params, call = _REDUCTIONS[op]
            body = f"  return {call.format(edge=edge.name, second=second.name if second else edge.name)};\n"
        else:
            params, call = _COLLECTIVES[op]
            body = f"  CUCO_GEN_TRY({call});\n  return {run}<{edge.name}>(stream);\n"
        text += f"inline ncclResult_t {name}_{op}({params}) {{\n{body}}}\n"
    if "Broadcast" in exchange.ops:
        text += _BCAST.format(name=name)
    if exchange.group is not None:
        text += f"inline ncclResult_t {name}_GroupStart() {{ return ncclSuccess; }}\n"
        text += f"inline ncclResult_t {name}_GroupEnd() {{ return ncclSuccess; }}\n"
    return text
