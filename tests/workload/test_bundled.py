"""The bundled workloads: every size evaluates, references fit, baselines exist."""

import pytest

from cuco.errors import UsageError
from cuco.workload import bundled_workloads, load_workload, run_secret

NAMES = list(bundled_workloads())


def test_all_are_there() -> None:
    micro = {
        f"micro/{name}" for name in ("allgather", "alltoall", "allreduce", "ring_shift", "producer_consumer")
    }
    assert set(NAMES) == micro | {"gemm_allgather", "kv_transfer"}
    assert load_workload("ring_shift").name == "ring_shift"


@pytest.mark.parametrize("name", NAMES)
def test_shapes_and_references(name: str) -> None:
    workload = load_workload(name)
    for size in ("tiny", *workload.odd_sizes()):
        params = workload.params(size)
        for ranks in {workload.spec.ranks.default, 2}:
            workload.check_ranks(ranks, params)
            inputs = [workload.inputs(run_secret(1), 0, rank, ranks, params) for rank in range(ranks)]
            references = workload.reference(inputs, params)
            assert len(references) == ranks and any(references)


@pytest.mark.parametrize("name", NAMES)
def test_every_size_has_buffers_and_work(name: str) -> None:
    workload = load_workload(name)
    ranks = workload.spec.ranks.default
    for size in workload.spec.sizes:
        params = workload.params(size)
        moved_out = moved_in = 0.0
        for rank in range(ranks):
            assert any(buffer.bytes for buffer in workload.buffers(rank, ranks, params))
            work = workload.work(rank, ranks, params)
            moved_out, moved_in = moved_out + work.bytes_out, moved_in + work.bytes_in
        assert moved_out == moved_in > 0


def test_buffer_of_size_zero() -> None:
    workload = load_workload("producer_consumer")
    sizes = [workload.buffers(rank, 4, workload.params("tiny"))[1].bytes for rank in range(4)]
    assert sizes == [0, 4096, 0, 4096]


def test_baselines_are_tuned_over_their_chunks() -> None:
    found = load_workload("gemm_allgather").baselines()
    assert found[0].name == "sequential" and not found[0].extra
    assert [dict(item.extra) for item in found[1:]] == [{"chunks": count} for count in (2, 4, 8)]
    assert all(item.source.is_file() for item in found)


def test_refusals() -> None:
    workload = load_workload("gemm_allgather")
    with pytest.raises(UsageError, match="no size 'huge'"):
        workload.params("huge")
    with pytest.raises(UsageError, match="not a multiple of 128"):
        workload.params("tiny", {"n": 200})
    with pytest.raises(UsageError, match="no parameter 'q'"):
        workload.params("tiny", {"q": 100})
    params = workload.params("tiny")
    with pytest.raises(UsageError, match="does not allow 3 ranks"):
        workload.check_ranks(3, params)
    with pytest.raises(UsageError, match="too few"):
        workload.check_ranks(1, params)
    with pytest.raises(UsageError, match="does not divide 4 ranks"):
        workload.lsa_team(4, params, 3)
    assert workload.lsa_team(4, params) == 4 and workload.lsa_team(4, params, 2) == 2
    assert load_workload("kv_transfer").lsa_team(2, {}) == 1
