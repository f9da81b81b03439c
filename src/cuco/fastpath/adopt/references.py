"""References of the shapes that ``init`` recognises: one collective from one buffer to another, no kernel
between."""

from __future__ import annotations

from cuco.source.graph import CommGraph, Edge

_REDUCTIONS = {"ncclSum": "sum", "ncclProd": "prod", "ncclMax": "max", "ncclMin": "min", "ncclAvg": "mean"}


def reference_of(graph: CommGraph, edges: list[Edge], send: str, recv: str, rows: bool) -> str | None:
    """The body of ``reference``, or None for a step that is more than one collective.

    ``rows``: the received buffer has a first extent of one row per rank.
    """
    if len(edges) != 1 or any(kernel.launches for kernel in graph.kernels) or not send or not recv:
        return None
    edge = edges[0]
    if edge.send_offset or edge.recv_offset or edge.conditional:
        return None
    given = f'np.stack([one["{send}"].astype(np.float64) for one in all_inputs])'
    start = f"ranks = len(all_inputs)\ngiven = {given}\n"
    result = _result(edge)
    if result is None:
        return None
    return start + result.format(recv=recv, flat=".reshape(ranks, -1)" if rows else ".reshape(-1)")


def _result(edge: Edge) -> str | None:
    root = edge.root or "0"
    reduction = _REDUCTIONS.get(edge.reduction or "")
    flat = "given.reshape(ranks, -1)"
    if edge.op == "AllGather":
        return 'return [{{"{recv}": ' + flat + "{flat}}} for _ in range(ranks)]"
    if edge.op == "AlltoAll":
        return (
            "parts = given.reshape(ranks, ranks, -1)\n"
            'return [{{"{recv}": parts[:, rank]{flat}}} for rank in range(ranks)]'
        )
    if edge.op == "Broadcast" and root.isdigit():
        return f'return [{{{{"{{recv}}": {flat}[{root}]}}}} for _ in range(ranks)]'
    if reduction is None:
        return None
    if edge.op == "AllReduce":
        return f'total = {flat}.{reduction}(axis=0)\nreturn [{{{{"{{recv}}": total}}}} for _ in range(ranks)]'
    if edge.op == "ReduceScatter":
        return (
            f"total = {flat}.{reduction}(axis=0).reshape(ranks, -1)\n"
            'return [{{"{recv}": total[rank]}} for rank in range(ranks)]'
        )
    if edge.op == "Reduce" and root.isdigit():
        return (
            f"total = {flat}.{reduction}(axis=0)\n"
            f'return [{{{{"{{recv}}": total}}}} if rank == {root} else {{{{}}}} for rank in range(ranks)]'
        )
    return None


#: Elements of send and receive buffers per count, by operation, as expressions over ``ranks``.
EXTENTS: dict[str, tuple[str, str]] = {
    "AllGather": ("{n}", "ranks * {n}"),
    "AlltoAll": ("ranks * {n}", "ranks * {n}"),
    "AllReduce": ("{n}", "{n}"),
    "ReduceScatter": ("ranks * {n}", "{n}"),
    "Broadcast": ("{n}", "{n}"),
    "Reduce": ("{n}", "{n}"),
    "Gather": ("{n}", "ranks * {n}"),
    "Scatter": ("ranks * {n}", "{n}"),
    "Send": ("{n}", ""),
    "Recv": ("", "{n}"),
}
