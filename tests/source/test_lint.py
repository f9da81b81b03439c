# ruff: noqa: E501  (sources on one line)
"""Each rule with a source that it rejects and a twin that it accepts."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuco.source import lint
from cuco.source.linting import rules

HOST = """
#include "cuco.h"
#include "nccl_device.h"
"""


def kernel(
    body: str,
    arguments: str = "ncclDevComm dc, ncclWindow_t to, ncclWindow_t from, size_t n",
    launch: str = "",
) -> str:
    return f"{HOST}__global__ void k({arguments}) {{\n  ncclGin gin{{dc, 0}};\n  ncclTeam world = ncclTeamWorld(dc);\n{body}\n}}\n{launch}"


def requirements(fields: str, body: str, launch: str = "k<<<4, 128, 0, s>>>(dc, to, from, 8);") -> str:
    return kernel(
        body,
        launch=f"""
int host(ncclComm_t comm, ncclDevComm dc, ncclWindow_t to, ncclWindow_t from, cudaStream_t s) {{
  ncclDevCommRequirements reqs = NCCL_DEV_COMM_REQUIREMENTS_INITIALIZER;
  reqs.ginConnectionType = NCCL_GIN_CONNECTION_FULL;
  {fields}
  ncclDevCommCreate(comm, &reqs, &dc);
  {launch}
  return 0;
}}
""",
    )


def step(body: str, more: str = "") -> str:
    return f"""{HOST}{more}
extern "C" int cuco_prepare(const cuco_ctx *ctx, void **state) {{ void *p; cudaMalloc(&p, 8); cudaFree(p); return 0; }}
extern "C" int cuco_launch(const cuco_ctx *ctx, void *state, cudaStream_t stream) {{ {body} return 0; }}
extern "C" int cuco_finish(const cuco_ctx *, void *) {{ cudaDeviceSynchronize(); return 0; }}
"""


def host(body: str) -> str:
    return f"{HOST}int host(ncclComm_t comm) {{\n{body}\n  return 0;\n}}\n"


LSA = "ncclLsaBarrierSession<ncclCoopCta> bar{ncclCoopCta(), dc, ncclTeamTagLsa(), INDEX};\n bar.sync(ncclCoopCta(), cuda::memory_order_acq_rel);"
WINDOW = "ncclWindow_t w; void *p; ALLOC ncclCommWindowRegister(comm, WHERE, 8192, &w, NCCL_WIN_DEFAULT);"

#: rule, severity, a source that breaks it, its fixed twin
CASES = [
    (
        "requirements-initializer",
        "error",
        host("ncclDevCommRequirements reqs = {}; reqs.lsaBarrierCount = 1;"),
        host(
            "ncclDevCommRequirements reqs = NCCL_DEV_COMM_REQUIREMENTS_INITIALIZER; reqs.lsaBarrierCount = 1;"
        ),
    ),
    (
        "requirements-initializer",
        "error",
        host("ncclDevCommRequirements_t reqs;\n memset(&reqs, 0, sizeof reqs);"),
        host("ncclDevCommRequirements_t reqs;\n reqs = NCCL_DEV_COMM_REQUIREMENTS_INITIALIZER;"),
    ),
    (
        "barrier-count",
        "error",
        requirements("reqs.lsaBarrierCount = 3;", LSA.replace("INDEX", "blockIdx.x")),
        requirements("reqs.lsaBarrierCount = 4;", LSA.replace("INDEX", "blockIdx.x")),
    ),
    (
        "barrier-count",
        "error",
        requirements("reqs.lsaBarrierCount = 2;", LSA.replace("INDEX", "2")),
        requirements("reqs.lsaBarrierCount = 3;", LSA.replace("INDEX", "2")),
    ),
    (
        "barrier-count",
        "error",
        requirements("", "ncclGinBarrier(ncclCoopCta(), gin, ncclTeamTagWorld(), 0);"),
        requirements(
            "reqs.worldGinBarrierCount = 1;", "ncclGinBarrier(ncclCoopCta(), gin, ncclTeamTagWorld(), 0);"
        ),
    ),
    (
        "barrier-count",
        "error",
        requirements(
            "reqs.barrierCount = 2;",
            "int b = blockIdx.x; ncclBarrierSession<ncclCoopCta> bar{ncclCoopCta(), ncclTeamTagWorld(), gin, b};",
        ),
        requirements(
            "reqs.barrierCount = 4;",
            "int b = blockIdx.x; ncclBarrierSession<ncclCoopCta> bar{ncclCoopCta(), ncclTeamTagWorld(), gin, b};",
        ),
    ),
    (
        "signal-count",
        "error",
        requirements("", "gin.waitSignal(ncclCoopCta(), 0, 1);"),
        requirements("reqs.ginSignalCount = 1;", "gin.waitSignal(ncclCoopCta(), 0, 1);"),
    ),
    (
        "signal-count",
        "error",
        requirements(
            "reqs.ginSignalCount = 2;",
            "unsigned id = blockIdx.x; gin.put(world, 1, to, 0, from, 0, n, ncclGin_WeakSignalInc{id});",
        ),
        requirements(
            "reqs.ginSignalCount = 4;",
            "unsigned id = blockIdx.x; gin.put(world, 1, to, 0, from, 0, n, ncclGin_WeakSignalInc{id});",
        ),
    ),
    (
        "signal-count",
        "warning",
        requirements("if (to) reqs.ginSignalCount = 1; else reqs.ginSignalCount = 2;", "gin.resetSignal(5);"),
        requirements("if (to) reqs.ginSignalCount = 1; else reqs.ginSignalCount = 6;", "gin.resetSignal(5);"),
    ),
    (
        "counter-count",
        "error",
        requirements(
            "reqs.ginCounterCount = 1;",
            "gin.put(world, 1, to, 0, from, 0, n, ncclGin_None{}, ncclGin_WeakCounterInc{1});",
        ),
        requirements(
            "reqs.ginCounterCount = 2;",
            "gin.put(world, 1, to, 0, from, 0, n, ncclGin_None{}, ncclGin_WeakCounterInc{1});",
        ),
    ),
    (
        "gin-connection",
        "error",
        host(
            "ncclDevCommRequirements reqs = NCCL_DEV_COMM_REQUIREMENTS_INITIALIZER; reqs.ginSignalCount = 1;"
        ),
        host(
            "ncclDevCommRequirements reqs = NCCL_DEV_COMM_REQUIREMENTS_INITIALIZER; reqs.ginSignalCount = 1; reqs.ginConnectionType = NCCL_GIN_CONNECTION_RAIL;"
        ),
    ),
    (
        "rail-world-barrier",
        "error",
        host(
            "ncclDevCommRequirements reqs = NCCL_DEV_COMM_REQUIREMENTS_INITIALIZER; reqs.worldGinBarrierCount = 1; reqs.ginConnectionType = NCCL_GIN_CONNECTION_RAIL;"
        ),
        host(
            "ncclDevCommRequirements reqs = NCCL_DEV_COMM_REQUIREMENTS_INITIALIZER; reqs.worldGinBarrierCount = 1; reqs.ginConnectionType = NCCL_GIN_CONNECTION_FULL;"
        ),
    ),
    (
        "divergent-coop",
        "error",
        kernel(
            "if (threadIdx.x == 0) gin.put(world, 1, to, 0, from, 0, n, ncclGin_WeakSignalInc{0}, ncclGin_None{}, ncclCoopCta());"
        ),
        kernel("if (threadIdx.x == 0) gin.put(world, 1, to, 0, from, 0, n, ncclGin_WeakSignalInc{0});"),
    ),
    (
        "divergent-coop",
        "error",
        kernel("int t = threadIdx.x; bool leader = t == 0;\n if (t % 32 == 0) gin.flush(ncclCoopWarp());"),
        kernel("int t = threadIdx.x; if (t / 32 == 0) gin.flush(ncclCoopWarp());"),
    ),
    (
        "divergent-coop",
        "warning",
        kernel("if (threadIdx.x < n) gin.flush(ncclCoopCta());"),
        kernel("if (blockIdx.x < n) gin.flush(ncclCoopCta());"),
    ),
    (
        "divergent-coop",
        "error",
        kernel(
            "if (threadIdx.x < 32) gin.flush(ncclCoopCta());",
            launch="void go(ncclDevComm dc, ncclWindow_t w) { k<<<1, 64>>>(dc, w, w, 1); }",
        ),
        kernel(
            "if (threadIdx.x < 64) gin.flush(ncclCoopWarp());",
            launch="void go(ncclDevComm dc, ncclWindow_t w) { k<<<1, 128>>>(dc, w, w, 1); }",
        ),
    ),
    (
        "divergent-syncthreads",
        "error",
        kernel("if (threadIdx.x != 0) { __syncthreads(); }"),
        kernel("if (n > 4) __syncthreads();"),
    ),
    (
        "divergent-syncthreads",
        "warning",
        kernel("for (int i = threadIdx.x; i < n; i += blockDim.x) __syncthreads();"),
        kernel("for (int i = 0; i < n; i += blockDim.x) __syncthreads();"),
    ),
    (
        "early-return",
        "error",
        kernel("if (threadIdx.x == 0) return;\n __syncthreads();"),
        kernel("__syncthreads();\n if (threadIdx.x == 0) return;"),
    ),
    (
        "early-return",
        "warning",
        kernel(
            "size_t i = blockIdx.x * blockDim.x + threadIdx.x;\n if (i >= n) return;\n gin.flush(ncclCoopCta());"
        ),
        kernel("size_t i = blockIdx.x * blockDim.x;\n if (i >= n) return;\n gin.flush(ncclCoopCta());"),
    ),
    (
        "rank-early-return",
        "warning",
        kernel("if (n == 0) return;\n" + LSA.replace("INDEX", "0")),
        kernel(LSA.replace("INDEX", "0") + "\nif (n == 0) return;"),
    ),
    (
        "signal-discipline",
        "error",
        kernel("gin.waitSignal(ncclCoopCta(), 0, gin.readSignal(0) + n);")
        + "__global__ void timed(ncclDevComm dc) { ncclGin gin{dc, 0}; gin.increaseSignalShadow(0, 1); gin.waitSignalMeetShadow(ncclCoopCta(), 0); }",
        kernel("gin.waitSignal(ncclCoopCta(), 1, gin.readSignal(1) + n);")
        + "__global__ void timed(ncclDevComm dc) { ncclGin gin{dc, 0}; gin.increaseSignalShadow(0, 1); gin.waitSignalMeetShadow(ncclCoopCta(), 0); }",
    ),
    (
        "signal-discipline",
        "warning",
        kernel(
            "gin.waitSignal(ncclCoopCta(), 0, n); gin.increaseSignalShadow(0, n); gin.waitSignalMeetShadow(ncclCoopCta(), 0);"
        ),
        kernel("gin.increaseSignalShadow(0, n); gin.waitSignalMeetShadow(ncclCoopCta(), 0);"),
    ),
    (
        "signal-inc-add",
        "error",
        kernel(
            "gin.signal(world, 1, ncclGin_StrongSignalInc{0}); gin.signal(world, 1, ncclGin_StrongSignalAdd{0, 3});"
        ),
        kernel(
            "gin.signal(world, 1, ncclGin_StrongSignalInc{0}); gin.signal(world, 1, ncclGin_StrongSignalAdd{1, 3});"
        ),
    ),
    (
        "weak-signal",
        "warning",
        kernel(
            "gin.put(world, 1, to, 0, from, 0, n); gin.put(world, 1, to, n, from, n, n, ncclGin_WeakSignalInc{0});"
        ),
        kernel(
            "gin.put(world, 1, to, 0, from, 0, n); gin.put(world, 1, to, n, from, n, n, ncclGin_StrongSignalInc{0});"
        ),
    ),
    (
        "window-memory",
        "error",
        host(WINDOW.replace("ALLOC", "cudaMalloc(&p, 8192);").replace("WHERE", "p")),
        host(WINDOW.replace("ALLOC", "ncclMemAlloc(&p, 8192);").replace("WHERE", "p")),
    ),
    (
        "window-alignment",
        "error",
        host(WINDOW.replace("ALLOC", "ncclMemAlloc(&p, 8192);").replace("WHERE", "(char *)p + 256")),
        host(WINDOW.replace("ALLOC", "ncclMemAlloc(&p, 8192);").replace("WHERE", "(float *)p + 1024")),
    ),
    (
        "plain-spin",
        "error",
        kernel("while (*flag != 1) {}", "ncclDevComm dc, int *flag"),
        kernel("while (*flag != 1) {}", "ncclDevComm dc, volatile int *flag"),
    ),
    (
        "plain-spin",
        "warning",
        kernel("while (flag[3] == 0) __nanosleep(20);", "ncclDevComm dc, int *flag"),
        kernel(
            "while (cuda::atomic_ref<int>(flag[3]).load() == 0) __nanosleep(20);", "ncclDevComm dc, int *flag"
        ),
    ),
    (
        "relaxed-publish",
        "warning",
        kernel(
            "float *p = (float *)ncclGetLsaPointer(to, 0, 1); p[0] = 1;\n"
            + LSA.replace("INDEX", "0").replace("acq_rel", "relaxed")
        ),
        kernel("float *p = (float *)ncclGetLsaPointer(to, 0, 1); p[0] = 1;\n" + LSA.replace("INDEX", "0")),
    ),
    (
        "launch-forbidden-call",
        "error",
        step("cudaDeviceSynchronize();"),
        step("cudaStreamWaitEvent(stream, 0, 0);"),
    ),
    (
        "launch-forbidden-call",
        "error",
        step("helper();", "static void helper() { void *p; cudaMalloc(&p, 4); }"),
        step("", "static void helper() { void *p; cudaMalloc(&p, 4); }"),
    ),
    (
        "launch-forbidden-call",
        "error",
        step("std::thread t([] {}); t.join();", "#include <thread>"),
        step("std::this_thread::yield();", "#include <thread>"),
    ),
]


def findings(write, source: str, rule: str):
    return [one for one in lint(write(source)) if one.rule == rule or one.severity == "error"]


@pytest.mark.parametrize(
    "rule, severity, wrong, right", CASES, ids=[f"{case[0]}-{n}" for n, case in enumerate(CASES)]
)
def test_rule(write, rule, severity, wrong, right):
    found = [one for one in findings(write, wrong, rule) if one.rule == rule]
    assert found, f"{rule} missed its example"
    assert {one.severity for one in found} == {severity}, found
    assert all(one.line > 0 and "{" not in one.message for one in found)
    assert findings(write, right, rule) == []


def test_every_rule_has_a_case_and_its_source():
    assert {case[0] for case in CASES} == set(rules())
    for rule in rules().values():
        assert rule.sentence and rule.source and rule.severity in ("error", "warning")


def test_honest_candidates_and_host_code_pass():
    root = Path(__file__).parents[2]
    sources = [*root.glob("workloads/**/*.cu"), *root.glob("tests/candidates/**/good_*.cu")]
    assert len(sources) >= 8
    for source in sources:
        assert [one for one in lint(source) if one.severity == "error"] == [], source


def test_the_line_is_that_of_the_call(write):
    (found,) = findings(write, step("\n\n  cudaFree(state);"), "launch-forbidden-call")
    assert found.line == 8 and found.message.startswith("cudaFree in cuco_launch")
