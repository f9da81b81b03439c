"""``cuco init --source``: a program's communication step becomes a workload that loads."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from cuco.errors import RejectedError, UsageError
from cuco.fastpath.adopt import adopt
from cuco.source import analyze
from cuco.workload import load_workload

PROGRAMS = Path(__file__).parent / "programs"
REPOSITORY = Path(__file__).parents[2]

PROGRAM = """#include <nccl.h>
void step(float *mine, float *all, int n, int rank, int nranks, ncclComm_t comm, cudaStream_t stream) {
  size_t count = (size_t)n * 2;
  CALL
}
"""


def adopted(tmp_path, write, call):
    source = write(PROGRAM.replace("CALL", call))
    adopt(source, tmp_path / "made")
    return load_workload(tmp_path / "made")


CALLS = [
    ("ncclAllGather(mine, all, count, ncclFloat, comm, stream);", lambda x, r: np.concatenate(x)),
    ("ncclAllReduce(mine, all, count, ncclFloat, ncclMax, comm, stream);", lambda x, r: np.max(x, axis=0)),
    (
        "ncclReduceScatter(mine, all, count, ncclFloat, ncclSum, comm, stream);",
        lambda x, r: np.sum(x, axis=0).reshape(4, -1)[r],
    ),
    (
        "ncclAlltoAll(mine, all, count, ncclFloat, comm, stream);",
        lambda x, r: np.concatenate([one.reshape(4, -1)[r] for one in x]),
    ),
    ("ncclBroadcast(mine, all, count, ncclFloat, 2, comm, stream);", lambda x, r: x[2]),
]


@pytest.mark.parametrize("call, expected", CALLS, ids=[one[0].split("(")[0] for one in CALLS])
def test_recognised_shapes_have_a_right_reference(tmp_path, write, call, expected):
    workload = adopted(tmp_path, write, call)
    assert {one.name: one.role for one in workload.spec.buffers} == {"mine": "in", "all": "out"}
    assert list(workload.spec.params) == ["n"]
    params = {**workload.params("tiny", {"n": 8}), "ranks": 4}
    namespace: dict = {}
    exec((workload.folder / "problem.py").read_text(), namespace)
    given = [namespace["inputs"](rank, params, np.random.default_rng(rank)) for rank in range(4)]
    shapes = {one.name: one.shape for one in workload.buffers(0, 4, workload.params("tiny", {"n": 8}))}
    assert given[0]["mine"].shape == shapes["mine"]
    for rank, found in enumerate(namespace["reference"](given, params)):
        assert found["all"].shape == shapes["all"]
        np.testing.assert_allclose(
            found["all"], expected([one["mine"].astype(np.float64) for one in given], rank)
        )
    assert set(namespace["work"](params, 0)) == {"flops", "bytes_out", "bytes_in", "hbm_bytes"}
    edges = analyze(workload.host_source).edges
    assert [one.op for one in edges] == [call.partition("(")[0].removeprefix("nccl")]
    assert (edges[0].send, edges[0].recv, edges[0].comm, edges[0].stream) == (
        "mine",
        "all",
        "ctx->comm",
        "stream",
    )


def test_kernels_loops_and_groups_are_carried_over(tmp_path):
    files = adopt(PROGRAMS / "halo.cu", tmp_path / "halo")
    assert files == ["host.cu", "problem.py", "workload.toml"]
    found = analyze(tmp_path / "halo" / "host.cu")
    assert [(one.op, one.send, one.recv, one.group, one.loop) for one in found.edges] == [
        ("Send", "scaled", None, 0, True),
        ("Recv", None, "received", 0, True),
    ]
    assert ("scale", "send_0", "scaled") in found.dependencies
    assert {(one.name, one.role) for one in found.buffers} == {
        ("input", "in"),
        ("scaled", "scratch"),
        ("received", "out"),
    }
    text = (tmp_path / "halo" / "host.cu").read_text()
    assert "main" not in text and "blocks_for" in text and "ncclCommInitRank" not in text
    workload = load_workload(tmp_path / "halo")
    assert list(workload.spec.params) == ["count"]
    with pytest.raises((RejectedError, NotImplementedError), match="has to say what the kernels compute"):
        namespace: dict = {}
        exec((workload.folder / "problem.py").read_text(), namespace)
        namespace["reference"]([], {})


def test_a_source_behind_cuco_h_is_taken_as_it_is(tmp_path):
    source = REPOSITORY / "workloads" / "micro" / "alltoall" / "host.cu"
    adopt(source, tmp_path / "copy")
    assert (tmp_path / "copy" / "host.cu").read_text() == source.read_text()
    workload = load_workload(tmp_path / "copy")
    assert [one.shape for one in workload.spec.buffers] == [("ranks", "n"), ("ranks", "n")]


@pytest.mark.parametrize(
    "program, said",
    [
        ("pipeline.cu", "2 communicators"),
        ("launches.cu", "which kernel that is"),
        ("device_api.cu", "no NCCL communication"),
    ],
)
def test_what_cannot_be_carried_over_is_refused_with_the_reason(tmp_path, program, said):
    with pytest.raises(UsageError, match=said) as error:
        adopt(PROGRAMS / program, tmp_path / "no")
    assert error.value.exit_code == 2 and not (tmp_path / "no").exists()


def test_a_folder_in_use_is_left_alone(tmp_path):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(UsageError, match="not an empty folder"):
        adopt(PROGRAMS / "halo.cu", tmp_path)
    assert (tmp_path / "file").read_text() == "mine"
