"""Places of functions, calls and launches, and edits over them."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cuco.errors import UsageError
from cuco.source import analyze
from cuco.source.edit import Edit, SourceFile, apply

PROGRAMS = Path(__file__).parent / "programs"

STEP = """// Größe: não é ASCII
#include <nccl.h>
#include "cuco.h"
#define NCCLCHECK(call) do { ncclResult_t r_ = (call); if (r_ != ncclSuccess) return 1000 + r_; } while (0)

// Doubles.
// In place.
template <class T>
__global__ void __launch_bounds__(128) twice(const T *in, float *out, int n) { out[n] = 2 * in[n]; }

extern "C" int cuco_prepare(const cuco_ctx *, void **) { return 0; }

/* One step. */
extern "C" int cuco_launch(const cuco_ctx *ctx, void *, cudaStream_t stream) {
  float *a = (float *)ctx->buffers[0].ptr;
  NCCLCHECK(ncclGroupStart());
  for (int p = 0; p < ctx->nranks; p++)
    NCCLCHECK(ncclSend(a + p, 1, ncclFloat,
                       p, ctx->comm, stream))  ;
  NCCLCHECK(ncclGroupEnd());
  ncclResult_t rc = ncclAllReduce(a, a, 4, ncclFloat, ncclSum, ctx->comm, stream);
  if (rc == ncclSuccess) { rc = ncclBcast(a, 4, ncclFloat, 0, ctx->comm, stream); }
  twice<float><<<dim3(4, 2), 128, 0, stream>>>(a, a, 1);
  return rc;
}
extern "C" int cuco_finish(const cuco_ctx *, void *) { return 0; }
"""


@pytest.fixture
def source(write):
    return SourceFile.read(write(STEP))


def test_statements_with_their_macros_and_semicolons(source):
    send = source.calls(op="Send")[0]
    assert source.slice(send.statement).startswith("NCCLCHECK(ncclSend(a + p") and source.slice(
        send.statement
    ).endswith(")  ;")
    assert source.slice(send.enclosing[0]).startswith("for (int p = 0")
    assert (send.macro, send.loop, send.variable) == ("NCCLCHECK", True, None)
    assert [one.text for one in send.arguments] == ["a + p", "1", "ncclFloat", "p", "ctx->comm", "stream"]
    assert (
        source.slice(send.call)
        == "ncclSend(a + p, 1, ncclFloat,\n                       p, ctx->comm, stream)"
    )
    start, end = source.calls(op="GroupStart")[0], source.calls(op="GroupEnd")[0]
    assert source.slice(start.statement) == "NCCLCHECK(ncclGroupStart());"
    assert source.slice((start.statement.start, end.statement.end)).count("NCCLCHECK") == 3


def test_results_that_are_kept(source):
    reduce, broadcast = source.calls(op="AllReduce")[0], source.calls(op="Broadcast")[0]
    assert (reduce.variable, reduce.declares, reduce.macro) == ("rc", True, None)
    assert source.slice(reduce.statement).startswith("ncclResult_t rc = ncclAllReduce")
    assert (broadcast.variable, broadcast.declares, broadcast.name) == ("rc", False, "ncclBcast")
    assert source.slice(broadcast.statement) == "rc = ncclBcast(a, 4, ncclFloat, 0, ctx->comm, stream);"
    assert source.slice(broadcast.enclosing[0]).startswith("if (rc == ncclSuccess) {")


def test_functions_and_kernels(source):
    launch, kernel = source.function("cuco_launch"), source.kernel("twice")
    assert (
        source.slice(launch.signature)
        == 'extern "C" int cuco_launch(const cuco_ctx *ctx, void *, cudaStream_t stream) '
    )
    assert [(one.name, one.type) for one in launch.parameters] == [
        ("ctx", "const cuco_ctx *"),
        ("", "void *"),
        ("stream", "cudaStream_t"),
    ]
    assert source.slice(launch.body)[0] == "{" and source.slice(launch.body)[-1] == "}"
    assert source.slice((source.before(launch), launch.span.start)) == "/* One step. */\n"
    assert kernel.kernel and kernel.template and kernel.launch_bounds == ("128",)
    assert source.slice(kernel.span).startswith("template <class T>\n__global__ void")
    assert source.slice((source.before(kernel), kernel.span.start)) == "// Doubles.\n// In place.\n"
    assert [(one.name, one.text) for one in kernel.parameters] == [
        ("in", "const T *in"),
        ("out", "float *out"),
        ("n", "int n"),
    ]
    assert source.slice(kernel.name_span) == "twice"
    assert [source.slice(span) for span in source.references(kernel, "n")] == ["n", "n"]
    with pytest.raises(UsageError, match="defines no function nothing"):
        source.function("nothing")


def test_launches(source):
    (launch,) = source.launches
    assert [one.text for one in launch.configuration] == ["dim3(4, 2)", "128", "0", "stream"]
    assert [one.text for one in launch.arguments] == ["a", "a", "1"]
    assert source.slice(launch.statement) == "twice<float><<<dim3(4, 2), 128, 0, stream>>>(a, a, 1);"
    assert source.slice(launch.callee) == "twice<float>" and launch.kernel == "twice"


def test_edits_leave_the_rest_alone(source):
    launch = source.function("cuco_launch")
    reduce = source.calls(op="AllReduce")[0]
    text = apply(
        source.text,
        [
            Edit.replace(reduce.statement, "int rc = 0;"),
            Edit.insert(source.after_includes, "struct State { int é; };\n"),
            Edit.insert(source.before(launch), "// first\n"),
            Edit.insert(source.before(launch), "// second\n"),
            Edit.delete(source.calls(op="GroupStart")[0].statement),
            Edit.insert(launch.body.start + 1, " // begins"),
            Edit.insert(launch.body.end - 1, "// ends\n"),
        ],
    )
    expected = (
        STEP.replace(
            "ncclResult_t rc = ncclAllReduce(a, a, 4, ncclFloat, ncclSum, ctx->comm, stream);", "int rc = 0;"
        )
        .replace('#include "cuco.h"\n', '#include "cuco.h"\nstruct State { int é; };\n')
        .replace("/* One step. */", "// first\n// second\n/* One step. */")
        .replace("NCCLCHECK(ncclGroupStart());", "")
        .replace("stream) {\n", "stream) { // begins\n", 1)
        .replace("  return rc;\n", "  return rc;\n// ends\n")
    )
    assert text == expected


def test_edits_that_cannot_be_made():
    with pytest.raises(ValueError, match="overlap"):
        apply("abcdef", [Edit(0, 3, ""), Edit(2, 4, "")])
    with pytest.raises(ValueError, match="outside"):
        apply("abc", [Edit(2, 9, "")])


@given(
    st.text(max_size=30),
    st.lists(st.tuples(st.integers(0, 30), st.integers(0, 5), st.text(max_size=4)), max_size=4),
)
def test_apply_is_the_same_as_replacing_from_the_back(text, wanted):
    data = text.encode()
    edits, at = [], 0
    for start, length, new in sorted(wanted):
        start = max(at, min(start, len(data)))
        end = min(start + length, len(data))
        edits.append(Edit(start, end, new))
        at = end
    expected = data
    for edit in reversed(edits):
        expected = expected[: edit.start] + edit.text.encode() + expected[edit.end :]
    try:
        shown = expected.decode()
    except UnicodeDecodeError:
        return  # an edit inside a character
    if all(_whole(data, edit.start) and _whole(data, edit.end) for edit in edits):
        assert apply(text, edits) == shown


def _whole(data: bytes, at: int) -> bool:
    return at == len(data) or data[at] & 0xC0 != 0x80


@pytest.mark.parametrize("name", ["macros", "launches", "pipeline", "step"])
def test_edges_and_launches_lead_to_their_places(name, program):
    source = SourceFile.read(PROGRAMS / f"{name}.cu")
    graph = program(name)
    for edge in graph.edges:
        call = source.call_at(edge.file, edge.offset)
        assert (call.line, call.op) == (edge.line, edge.op)
    for kernel in graph.kernels:
        for launch in kernel.launches:
            assert source.call_at(launch.file, launch.offset).line == launch.line


def test_an_edited_source_still_says_the_same(source, write):
    moved = apply(source.text, [Edit.insert(source.after_includes, "// one more line\n")])
    before, after = analyze(source.path), analyze(source.path, text=moved)
    assert [one.id for one in before.edges] == [one.id for one in after.edges]
    assert [one.line + 1 for one in before.edges] == [one.line for one in after.edges]
