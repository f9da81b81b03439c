"""Which calls of the CommGraph form one exchange, and what the exchange needs from its code.

An exchange is one collective, one group of point-to-point calls, or a send and the receive that answers it
elsewhere in the program (both run the same generated code, one on each side)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cuco.propose.protocol import ProposalRefused

if TYPE_CHECKING:
    from cuco.source import CommGraph
    from cuco.source.graph import Edge

POINT_TO_POINT = ("Send", "Recv")
REDUCTIONS = ("AllReduce", "ReduceScatter", "Reduce")
COLLECTIVES = ("AllGather", "AlltoAll", "Broadcast", "Gather", "Scatter", *REDUCTIONS)
#: Several transfers between one pair of ranks in one group (per-expert sends, say) each need a slot.
GROUP_SLOTS = 4


@dataclass(frozen=True)
class Exchange:
    """Calls that run together. ``calls``: edge ids in source order; ``group``: group number or None."""

    calls: tuple[str, ...]
    ops: tuple[str, ...]
    group: int | None

    @property
    def leader(self) -> str:
        """The edge whose directive decides for all."""
        return self.calls[0]

    @property
    def collective(self) -> bool:
        """All ranks take part, so a barrier may span the world."""
        return all(op in COLLECTIVES for op in self.ops)

    @property
    def reduces(self) -> bool:
        return any(op in REDUCTIONS for op in self.ops)

    @property
    def phases(self) -> int:
        """Exchanges at run time: an all-reduce is a reduce-scatter and an all-gather."""
        return 2 if "AllReduce" in self.ops else 1

    @property
    def slots(self) -> int:
        return GROUP_SLOTS if self.group is not None else 1


def exchanges(graph: CommGraph) -> list[Exchange]:
    """The exchanges of a program, in source order. A call site reached on several paths is one exchange.

    Raises ProposalRefused where the built-in construction does not reach: several communicators, unknown
    calls."""
    with_comm = [edge for edge in graph.edges if edge.comm]
    for edge in with_comm:
        if edge.comm != with_comm[0].comm:
            raise ProposalRefused(
                f"the program uses several communicators ({with_comm[0].comm}, here {edge.comm}), "
                "and the built-in construction covers one",
                line=edge.line,
                fix="Make a workload of the part that uses one of them",
            )
    sites: dict[tuple[str, int, str], list[Edge]] = {}
    for edge in graph.edges:
        if edge.op not in COLLECTIVES + POINT_TO_POINT:
            raise ProposalRefused(
                f"nccl{edge.op} has no device-initiated construction",
                line=edge.line,
                fix=f"These have: {', '.join(POINT_TO_POINT + COLLECTIVES)}",
            )
        sites.setdefault((edge.file, edge.line, edge.op), []).append(edge)
    found: list[Exchange] = []
    groups: dict[int, list[list[Edge]]] = {}
    singles: list[list[Edge]] = []
    for edges in sites.values():
        if edges[0].group is not None:
            groups.setdefault(edges[0].group, []).append(edges)
        elif edges[0].op in POINT_TO_POINT:
            singles.append(edges)
        else:
            found.append(_exchange([edges], None))
    for number, members in groups.items():
        if any(edges[0].op in COLLECTIVES for edges in members) and len(members) > 1:
            raise ProposalRefused(
                "a group mixes collectives with other calls",
                line=members[0][0].line,
                fix="Put each collective outside the group, or into a group of its own",
            )
        found.append(_exchange(members, number))
    found += _pairs(singles)
    order = {edge.id: index for index, edge in enumerate(graph.edges)}
    return sorted(found, key=lambda exchange: order[exchange.leader])


def _exchange(sites: Sequence[Sequence[Edge]], group: int | None) -> Exchange:
    return Exchange(
        tuple(edge.id for edges in sites for edge in edges), tuple(edges[0].op for edges in sites), group
    )


def _pairs(singles: Sequence[Sequence[Edge]]) -> list[Exchange]:
    """Ungrouped sends and receives: the k-th send of the source answers the k-th receive, if there are as
    many; else all of them are one exchange, whose transfers then run one after the other."""
    sends = [edges for edges in singles if edges[0].op == "Send"]
    recvs = [edges for edges in singles if edges[0].op == "Recv"]
    if not singles:
        return []
    if len(sends) == len(recvs):
        return [_exchange([s, r], None) for s, r in zip(sends, recvs, strict=True)]
    return [_exchange(singles, None)]
