"""What the built-in proposer writes is right: compiled by nvcc, run and verified in the emulator."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuco.propose.builtin import BuiltinProposer
from cuco.propose.builtin.config import ProducerMap
from cuco.propose.builtin.exchange import exchanges
from cuco.propose.builtin.source_map import Producer
from cuco.propose.protocol import MAIN_FILE, Operator, ProposalRequest
from cuco.source import CommGraph, analyze
from cuco.space import Directive, SpaceContext
from cuco.verify import verify
from cuco.verify.options import VerifyOptions
from cuco.workload import Workload, load_workload

#: Domains by backend: LSA needs one, GIN is told apart best with none, Hybrid needs both kinds of peer.
TEAM = {"LSA": 4, "GIN": 1, "Hybrid": 2}


def candidate(workload: Workload, backend: str, sync: str, placement: str, ranks: int, folder: Path) -> Path:
    """Writes the middle one of the designs of this kind."""
    graph = analyze(workload.host_source)
    found = exchanges(graph)
    producers = (
        {one.leader: row_blocks(graph) for one in found}
        if placement in ("Pipelined", "Persistent", "TileFused")
        else {}
    )
    contexts = {
        one.leader: SpaceContext(ranks=ranks, lsa_team=TEAM[backend] if ranks == 4 else 1, op=one.ops[0])
        for one in found
    }
    proposer = BuiltinProposer(workload.host_source, producers=producers)
    offered = proposer.options(graph, contexts)[found[0].leader]
    alike = [d for d in offered if (d.backend, d.sync, d.placement) == (backend, sync, placement)]
    assert alike, f"no design {backend} {sync} {placement} is offered for {workload.name}"
    chosen: dict[str, Directive] = {one.leader: alike[len(alike) // 2] for one in found}
    proposal = proposer.propose(ProposalRequest(workload, graph, contexts, chosen, Operator.SEED, 0, 0, 1))
    path = folder / "candidate.cu"
    path.write_text(proposal.sources[MAIN_FILE], encoding="utf-8")
    return path


def row_blocks(graph: CommGraph) -> Producer:
    """The GEMM's map: CTAs of one row of the grid complete one block of rows."""
    (kernel,) = graph.kernels
    place = kernel.launches[0]
    return Producer(kernel.name, place.file, place.offset, ProducerMap(1, 0), 1 << 20, True, True, True)


def accepted(
    name: str,
    backend: str,
    sync: str,
    placement: str,
    tmp_path: Path,
    *,
    ranks: int = 4,
    effort: str = "quick",
) -> None:
    workload = load_workload(name)
    path = candidate(workload, backend, sync, placement, ranks, tmp_path)
    options = VerifyOptions(ranks=ranks, lsa_team=TEAM[backend] if ranks == 4 else 1, effort=effort)  # type: ignore[arg-type]
    verdict = verify(workload, path, options)
    assert verdict.accepted, [str(finding) for finding in verdict.findings]


def test_signals_over_lsa(tmp_path: Path) -> None:
    accepted("micro/allgather", "LSA", "Signal", "Deferred", tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["LSA", "GIN", "Hybrid"])
@pytest.mark.parametrize("name", ["allgather", "alltoall", "allreduce", "ring_shift", "producer_consumer"])
def test_conservative_candidates_of_every_micro_workload(name: str, backend: str, tmp_path: Path) -> None:
    sync = "Barrier" if name in ("allgather", "alltoall", "allreduce") else "Signal"
    accepted(f"micro/{name}", backend, sync, "Deferred", tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("placement", ["StreamSplit", "Pipelined", "Persistent", "TileFused"])
@pytest.mark.parametrize(
    ("backend", "sync"), [("LSA", "Signal"), ("GIN", "Signal"), ("GIN", "SignalShadow"), ("Hybrid", "Signal")]
)
def test_overlapped_gemm(backend: str, sync: str, placement: str, tmp_path: Path) -> None:
    accepted("gemm_allgather", backend, sync, placement, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("placement", ["Deferred", "StreamSplit", "Pipelined", "Persistent", "TileFused"])
def test_key_value_transfer(placement: str, tmp_path: Path) -> None:
    accepted("kv_transfer", "GIN", "Signal", placement, tmp_path, ranks=2)


def test_an_exchange_that_does_not_wait_for_its_producer_is_rejected(tmp_path: Path) -> None:
    workload = load_workload("gemm_allgather")
    path = candidate(workload, "LSA", "Signal", "Pipelined", 4, tmp_path)
    text = path.read_text(encoding="utf-8")
    wait = "while (ready.load(cuda::memory_order_acquire) < step * producers_of<Edge>(m, c)) {}"
    assert text.count(wait) == 1
    path.write_text(text.replace(wait, "(void)ready;"), encoding="utf-8")
    verdict = verify(workload, path, VerifyOptions(effort="quick"))
    assert not verdict.accepted
    assert {finding.kind for finding in verdict.findings} == {"wrong-result"}
