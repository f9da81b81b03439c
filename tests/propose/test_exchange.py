"""Calls become exchanges; exchanges become functions and constants."""

from __future__ import annotations

import pytest

from cuco.propose.builtin.calls import shims
from cuco.propose.builtin.config import ProducerMap, edge_config
from cuco.propose.builtin.exchange import exchanges
from cuco.propose.protocol import ProposalRefused
from cuco.source.graph import CommGraph, Edge
from cuco.space import Directive


def edge(
    number: int, op: str, *, line: int | None = None, group: int | None = None, comm: str = "comm"
) -> Edge:
    return Edge(
        id=f"e{number}",
        op=op,
        send="send",
        recv="recv",
        count="n",
        dtype="float32",
        peer="p",
        comm=comm,
        stream="stream",
        line=line or number,
        function="cuco_launch",
        group=group,
        loop=False,
    )


def directive(**changes: object) -> Directive:
    base = {
        "backend": "LSA",
        "sync": "Signal",
        "placement": "Deferred",
        "scope": "World",
        "issuer": "CTA",
        "granularity": "Whole",
        "ordering": "AcqRel",
    }
    return Directive.model_validate(base | changes)


def test_sends_pair_with_receives_in_source_order() -> None:
    graph = CommGraph(edges=(edge(1, "Send"), edge(2, "Send"), edge(3, "Recv"), edge(4, "Recv")))
    assert [one.calls for one in exchanges(graph)] == [("e1", "e3"), ("e2", "e4")]


def test_unequal_sends_and_receives_share_one_exchange() -> None:
    graph = CommGraph(edges=(edge(1, "Send"), edge(2, "Recv"), edge(3, "Recv")))
    assert [one.calls for one in exchanges(graph)] == [("e1", "e2", "e3")]


def test_a_call_site_on_two_paths_is_one_exchange() -> None:
    graph = CommGraph(edges=(edge(1, "AllGather", line=7), edge(2, "AllGather", line=7)))
    assert [one.calls for one in exchanges(graph)] == [("e1", "e2")]


def test_a_group_is_one_exchange_with_slots_for_several_transfers_per_pair() -> None:
    found = exchanges(
        CommGraph(edges=(edge(1, "Send", group=0), edge(2, "Recv", group=0), edge(3, "AllReduce")))
    )
    assert [(one.calls, one.slots, one.phases) for one in found] == [(("e1", "e2"), 4, 1), (("e3",), 1, 2)]


def test_what_is_not_covered_is_refused_with_line_reason_and_help() -> None:
    with pytest.raises(ProposalRefused, match=r"^line 2: .*\(comm, here other\).*\. Make a workload of"):
        exchanges(CommGraph(edges=(edge(1, "AllGather"), edge(2, "AllGather", comm="other"))))
    with pytest.raises(ProposalRefused, match=r"^line 1: ncclPutSignal .*\. These have: Send, "):
        exchanges(CommGraph(edges=(edge(1, "PutSignal"),)))
    with pytest.raises(ProposalRefused, match=r"^line 1: a group mixes .*\. Put each collective"):
        exchanges(CommGraph(edges=(edge(1, "AllGather", group=0), edge(2, "Send", group=0))))


def test_a_chunk_becomes_pieces_at_the_optimised_size() -> None:
    config = edge_config(
        0, 0, 1, directive(granularity="Chunk(1000)"), bytes_per_transfer=4001, producer=None
    )
    assert config.pieces == 5
    assert "kPieces = 5" in config.render()


def test_overlap_without_a_map_is_refused() -> None:
    with pytest.raises(ProposalRefused, match="no map"):
        edge_config(0, 0, 1, directive(placement="Pipelined"), bytes_per_transfer=1, producer=None)
    tile = directive(placement="TileFused", sync="Barrier", granularity="Chunk(4)")
    with pytest.raises(ProposalRefused, match="barrier"):
        edge_config(0, 0, 1, tile, bytes_per_transfer=1, producer=ProducerMap(1, 0))


def test_hybrid_barriers_keep_to_one_context() -> None:
    with pytest.raises(ProposalRefused, match="one context"):
        edge_config(
            0,
            0,
            1,
            directive(backend="Hybrid", sync="Barrier", contexts=2),
            bytes_per_transfer=1,
            producer=None,
        )


@pytest.mark.parametrize(
    "op", ["AllGather", "AlltoAll", "Broadcast", "Gather", "Scatter", "AllReduce", "ReduceScatter", "Reduce"]
)
def test_every_collective_has_a_function_of_its_name(op: str) -> None:
    (exchange,) = exchanges(CommGraph(edges=(edge(1, op),)))
    config = edge_config(0, 0, 1, directive(), bytes_per_transfer=1, producer=None)
    text = shims(exchange, config, config if exchange.phases == 2 else None)
    assert f"inline ncclResult_t edge0_{op}(" in text
