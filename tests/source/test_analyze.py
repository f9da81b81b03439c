"""What a careful reader finds in the programs of this folder, and what analyze must find."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cuco.source import analyze

PROGRAMS = Path(__file__).parent / "programs"


def edges(graph, *fields):
    return [tuple(getattr(one, field) for field in fields) for one in graph.edges]


def launches(graph, kernel):
    return next(one for one in graph.kernels if one.name == kernel).launches


def test_calls_behind_macros_and_in_no_comment_or_string(program):
    found = program("macros")
    assert edges(found, "op", "send", "recv", "peer", "group", "line") == [
        ("Send", "mine", None, "peer", 0, 34),
        ("Recv", None, "theirs", "peer", 0, 35),
        ("AllReduce", "mine", "theirs", None, None, 42),
    ]
    assert (
        edges(found, "count", "dtype", "comm", "stream", "function", "loop")
        == [("count", "ncclFloat", "comm", "stream", "step", False)] * 3
    )
    assert found.edges[2].reduction == "ncclSum"
    (launch,) = launches(found, "scale")
    assert (launch.line, launch.grid, launch.block, launch.shared, launch.stream) == (
        37,
        "4",
        "256",
        "0",
        "stream",
    )
    assert launch.args == ("2.f", "theirs", "mine")
    assert found.dependencies == (("recv_0", "scale", "theirs"), ("scale", "allreduce_0", "mine"))


def test_templates_methods_lambdas_and_tables(program):
    found = program("templates")
    assert edges(found, "op", "send", "recv", "function") == [
        ("AllGather", "x", "y", "collect"),
        ("AllGather", "wide", "wide", "collect"),
        ("ReduceScatter", "x", "y", "program"),
        ("AllReduce", "x", "y", "in_group"),
        ("Send", "x", None, "program"),
        ("Recv", None, "y", "program"),
        ("Send", "x", None, "run"),
        ("Send", "x", None, "run"),
        ("Broadcast", "y", "y", "announce"),
    ]
    assert [one.dtype for one in found.edges[:4]] == ["ncclFloat", "ncclDouble", "ncclFloat", "ncclFloat"]
    assert [one.count for one in found.edges[:4]] == ["n", "2 * n", "n", "n"]
    assert {one.comm for one in found.edges} == {"c.comm"} and {one.stream for one in found.edges} == {
        "c.stream"
    }
    assert [one.group for one in found.edges] == [None, None, None, 0, None, None, None, None, None]
    assert found.edges[-1].root == "3" and found.edges[2].reduction == "ncclMax"


def test_every_form_of_launch(program):
    found = program("launches")
    first, second = launches(found, "apply")
    assert (first.grid, first.block, first.shared, first.stream) == (
        "dim3(i << 1, 2)",
        "dim3(32, (i > 3) ? 4 : 8)",
        "i >> 1",
        "s",
    )
    assert first.grid_size == ("i << 1", "2", "1") and first.block_size == ("32", "(i > 3) ? 4 : 8", "1")
    assert (second.grid, second.block, second.stream, second.args) == ("1", "32", "0", ("f", "3"))
    assert [(one.line, one.grid) for one in launches(found, "plain")] == [
        (24, "1"),
        (27, "shifted<2>()"),
        (29, "i"),
    ]
    assert [one.conditional for one in launches(found, "plain")] == [False, False, True]
    assert len(launches(found, "call")) == 1
    assert [(one.via, one.line, one.args) for one in launches(found, "two")] == [
        ("cudaLaunchKernel", 34, ("f", "g", "count")),
        ("cudaLaunchCooperativeKernel", 35, ("f", "g", "count")),
        ("cudaLaunchKernelEx", 41, ("(const float *)f", "g", "count")),
        ("cudaLaunchKernelExC", 42, ("f", "g", "count")),
    ]
    assert {one.stream for one in launches(found, "two")} == {"s"}
    assert [one.grid_size for one in launches(found, "two")] == [("(i + 15) / 16", "2", "1")] * 4
    assert [one.block_size[0] for one in launches(found, "two")] == ["16", "16", "128", "128"]
    assert [one.cooperative for one in launches(found, "two")] == [False, True, False, False]
    assert launches(found, "two")[0].buffers == (("f",), ("g",), ())
    unknown = [one for one in found.kernels if not one.resolved]
    assert [(one.name, len(one.launches)) for one in unknown] == [("table.kernels[i & 1]", 1)]
    assert "table.kernels" in found.notes[0]
    apply = next(one for one in found.kernels if one.name == "apply")
    assert apply.launch_bounds == ("256", "2") and apply.template
    assert edges(found, "op", "send", "line") == [("AllReduce", "p", 29)]


def test_headers_threads_function_objects_and_looked_up_symbols(program):
    found = program("indirect")
    assert edges(found, "op", "group", "line", "function") == [
        ("Send", 0, 7, "swap_halos"),
        ("Recv", 0, 8, "swap_halos"),
        ("Send", 1, 24, "worker"),
        ("Recv", 1, 24, "worker"),
        ("Reduce", None, 27, "worker"),
        ("AllReduce", None, 30, "worker"),
        ("AllReduce", None, 31, "worker"),
    ]
    assert {one.send or one.recv for one in found.edges} == {"x"}
    assert {one.comm for one in found.edges} == {"comms[i]"}
    assert found.edges[0].peer == "(i + 1) % ranks" and found.edges[2].peer == "p"
    assert all(one.loop for one in found.edges), "main starts the workers in a loop"
    assert found.edges[0].file.endswith("shared_header.cuh") and found.edges[0].call_lines == (40, 19)
    other = analyze(PROGRAMS / "indirect.cu", defines=["SCATTERED"])
    assert [one.op for one in other.edges][-1] == "ReduceScatter"


def test_device_api_in_templates(program):
    found = program("device_api")
    assert found.device_calls == {
        "flush": 1,
        "ncclCoopCta": 4,
        "ncclGetLsaPointer": 1,
        "ncclGin": 1,
        "ncclLsaBarrierSession": 1,
        "ncclTeamTagLsa": 1,
        "ncclTeamWorld": 1,
        "put": 1,
        "sync": 1,
        "waitSignal": 1,
    }
    (kernel,) = found.kernels
    assert [(one.name, one.access, one.remote) for one in kernel.parameters] == [
        ("comm", "none", False),
        ("to", "read-write", True),
        ("from", "read", False),
        ("scale", "read", False),
        ("n", "none", False),
    ]
    assert kernel.launches[0].grid == "8"


def test_a_whole_program(program):
    found = program("pipeline")
    assert edges(found, "id", "op", "send", "recv", "comm", "stream", "loop") == [
        ("allgather_0", "AllGather", "b.partial", "b.gathered", "world", "communicate", True),
        ("broadcast_0", "Broadcast", "b.gathered", "b.gathered", "half", "communicate", True),
    ]
    assert {(one.name, one.allocator, one.bytes, one.role) for one in found.buffers} == {
        ("b.input", "cudaMalloc", "n * 4", "in"),
        ("b.partial", "cudaMalloc", "n * 4", "scratch"),
        ("b.gathered", "ncclMemAlloc", "n * ranks * sizeof(float)", "scratch"),
        ("result", "cudaMalloc", "32 * sizeof(float)", "out"),
    }
    assert set(found.dependencies) == {
        ("produce", "allgather_0", "b.partial"),
        ("allgather_0", "broadcast_0", "b.gathered"),
        ("allgather_0", "consume", "b.gathered"),
        ("broadcast_0", "consume", "b.gathered"),
    }
    assert found.producers("allgather_0") == ["produce"]
    assert found.consumers("broadcast_0") == ["consume"]
    assert found.timed_region == (54, 63)
    produce, consume = found.kernels
    assert [(one.name, one.access) for one in produce.parameters] == [
        ("in", "read"),
        ("out", "write"),
        ("n", "none"),
    ]
    assert [(one.access, one.atomic) for one in consume.parameters] == [
        ("read", False),
        ("read-write", True),
        ("none", False),
    ]
    assert set(found.communicators) == {"world", "half"} and set(found.streams) == {"compute", "communicate"}
    assert found.entry_points == ("main",)


def test_a_candidate_behind_cuco_h(program):
    found = program("step")
    assert edges(found, "op", "send", "recv", "stream", "loop") == [
        ("Send", "s->staging", None, "s->side", True),
        ("AlltoAll", "s->staging", "recv", "stream", False),
    ]
    assert [(one.name, one.allocator, one.windows) for one in found.buffers] == [
        ("buffers[0]", "cuco", ()),
        ("s->staging", "cuco_alloc", ("s->window",)),
        ("recv", "cuco", ()),
    ]
    assert found.timed_region == (38, 46)
    assert set(found.dependencies) == {
        ("twice", "send_0", "s->staging"),
        ("twice", "alltoall_0", "s->staging"),
        ("alltoall_0", "twice", "recv"),
    }
    assert found.entry_points == ("cuco_prepare", "cuco_launch", "cuco_finish")


def test_ids_are_stable_and_the_json_is_the_contract(program):
    data = json.loads(program("pipeline").model_dump_json())
    assert {"kernels", "edges", "buffers", "dependencies", "timed_region"} <= set(data)
    assert {"name", "line", "launches"} <= set(data["kernels"][0])
    assert {"line", "grid", "block", "stream", "args"} <= set(data["kernels"][0]["launches"][0])
    assert {
        "id",
        "op",
        "send",
        "recv",
        "count",
        "dtype",
        "peer",
        "comm",
        "stream",
        "line",
        "function",
        "group",
        "loop",
    } <= set(data["edges"][0])
    assert {"name", "allocator", "bytes", "role"} <= set(data["buffers"][0])
    assert analyze(PROGRAMS / "pipeline.cu") == program("pipeline")


GROUPED = """
#include <nccl.h>
void braces(float *a, float *b, int n, int ranks, ncclComm_t c, cudaStream_t s) {
  ncclGroupStart();
  for (int r = 0; r < ranks; r++) {
    ncclSend(a + r * n, n, ncclFloat, r, c, s);
    ncclRecv(b + r * n, n, ncclFloat, r, c, s);
  }
  ncclGroupEnd();
}
void bare(float *a, float *b, int n, int ranks, ncclComm_t c, cudaStream_t s) {
  ncclGroupStart();
  for (int r = 0; r < ranks; r++)
    ncclSend(&a[r * n], n, ncclFloat, r, c, s);
  int r = 0;
  while (r < ranks) ncclRecv(&b[r * n], n, ncclFloat, r, c, s), r++;
  ncclGroupEnd();
}
"""


def test_groups_in_loops_with_and_without_braces(write):
    found = analyze(write(GROUPED))
    assert edges(found, "op", "send", "recv", "group", "loop", "function") == [
        ("Send", "a", None, 0, True, "braces"),
        ("Recv", None, "b", 0, True, "braces"),
        ("Send", "a", None, 1, True, "bare"),
        ("Recv", None, "b", 1, True, "bare"),
    ]
    assert [one.send_offset or one.recv_offset for one in found.edges] == ["r * n"] * 4


PING_PONG = """
#include <nccl.h>
#include <utility>
__global__ void relax(const float *from, float *to) { to[threadIdx.x] = from[threadIdx.x]; }
void steps(int n, ncclComm_t c, cudaStream_t s) {
  float *now, *next;
  cudaMalloc(&now, n); cudaMalloc(&next, n);
  for (int i = 0; i < 8; i++) {
    relax<<<1, 32, 0, s>>>(now, next);
    ncclAllReduce(next, next, n, ncclFloat, ncclSum, c, s);
    std::swap(now, next);
  }
}
"""


def test_swapped_buffers_are_both_seen_from_the_next_turn(write):
    found = analyze(write(PING_PONG))
    assert ("relax", "allreduce_0", "next") in found.dependencies
    assert ("allreduce_0", "relax", "next") in found.carried


STRUCT = """
#include <nccl.h>
struct Work { const float *in; float *out; int n; };
__device__ void store(Work w, int i, float v) { w.out[i] = v; }
__global__ void run(Work w) { store(w, threadIdx.x, w.in[threadIdx.x]); }
void step(float *x, float *y, int n, ncclComm_t c, cudaStream_t s) {
  Work w{x, y, n};
  run<<<1, 32, 0, s>>>(w);
  ncclAllReduce(y, x, n, ncclFloat, ncclSum, c, s);
}
"""


def test_buffers_in_a_struct_passed_by_value(write):
    found = analyze(write(STRUCT))
    assert set(found.kernels[0].launches[0].buffers[0]) == {"x", "y"}
    assert ("run", "allreduce_0", "y") in found.dependencies


@pytest.mark.parametrize(
    "clock",
    [
        ("double t0 = MPI_Wtime();", "double t1 = MPI_Wtime();"),
        ("auto t0 = std::chrono::steady_clock::now();", "auto t1 = std::chrono::steady_clock::now();"),
        (
            "timespec t0; clock_gettime(CLOCK_MONOTONIC, &t0);",
            "timespec t1; clock_gettime(CLOCK_MONOTONIC, &t1);",
        ),
    ],
)
def test_host_clocks_around_the_work(write, clock):
    found = analyze(
        write(f"""#include <nccl.h>
#include <mpi.h>
#include <chrono>
#include <ctime>
void step(float *x, int n, ncclComm_t c, cudaStream_t s) {{
  {clock[0]}
  ncclAllReduce(x, x, n, ncclFloat, ncclSum, c, s);
  cudaStreamSynchronize(s);
  {clock[1]}
}}
""")
    )
    assert found.timed_region == (6, 9)


def test_buffers_in_classes(program):
    found = program("objects")
    assert edges(found, "op", "send", "recv", "function", "comm") == [
        ("AllReduce", "grads", "grads", "combine", "world"),
        ("ReduceScatter", "grads", "shards", "scatter", "world"),
        ("Broadcast", "weights", "weights", "step", "world"),
        ("AllReduce", "local.grads", "local.grads", "combine", "world"),
        ("ReduceScatter", "local.grads", "local.shards", "scatter", "world"),
        ("Broadcast", "local.weights", "local.weights", "step", "world"),
    ]
    assert {one.name: (one.allocator, one.bytes) for one in found.buffers} == {
        "grads": ("cudaMalloc", "1024 * sizeof(float)"),
        "weights": ("cudaMalloc", "1024 * sizeof(float)"),
        "shards": ("cudaMalloc", "1024"),
        "local.grads": ("cudaMalloc", "2048 * sizeof(float)"),
        "local.weights": ("cudaMalloc", "2048 * sizeof(float)"),
        "local.shards": ("cudaMalloc", "2048"),
    }
    assert ("fill", "allreduce_0", "grads") in found.dependencies
    assert ("allreduce_0", "broadcast_0", "weights") in found.dependencies, "through a copy"
    last = launches(found, "fill")[-1]
    assert (last.args[0], last.buffers[0], last.grid_size) == (
        "local.weights",
        ("local.weights",),
        ("4", "2", "1"),
    )
