"""What cannot be constructed is refused with its line, the reason, and what would help."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cuco.propose.builtin.config import ProducerMap
from cuco.propose.builtin.construct import Construction, construct
from cuco.propose.builtin.exchange import exchanges
from cuco.propose.builtin.source_map import Producer
from cuco.propose.protocol import ProposalRefused
from cuco.source import analyze
from cuco.source.edit import SourceFile
from cuco.space import Directive
from cuco.space.dimensions import Placement

HEAD = '#include "cuco.h"\n'
TAIL = """
extern "C" int cuco_prepare(const cuco_ctx *, void **) { return 0; }
extern "C" int cuco_finish(const cuco_ctx *, void *) { return 0; }
"""
KERNEL = "__global__ void fill(float *x) { x[blockIdx.x] = 1; }\n"
STEP = 'extern "C" int cuco_launch(const cuco_ctx *ctx, void *, cudaStream_t s) {{\n'
STEP += "  float *x = (float *)ctx->buffers[0].ptr;\n{body}\n  return 0;\n}}\n"
GATHER = "  ncclAllGather(x, x, 4, ncclFloat, ctx->comm, s);"
FILL = "  fill<<<4, 1, 0, s>>>(x);"


def refusal(path: Path, *, placement: str = "Deferred", fits: bool = True, **changes: str) -> str:
    graph, source = analyze(path), SourceFile.read(path)
    found = exchanges(graph)
    producers = {}
    if graph.kernels and placement != "StreamSplit":
        (kernel,) = graph.kernels
        place = kernel.launches[0]
        at = ProducerMap(0, 0)
        producers = {
            found[0].leader: Producer(kernel.name, place.file, place.offset, at, 64, fits, fits, fits)
        }
    directive = Directive.model_validate(
        {"backend": "LSA", "sync": "Signal", "placement": placement, "scope": "World", "issuer": "CTA",
         "granularity": "Chunk(16)" if producers else "Whole", "ordering": "AcqRel"} | changes)  # fmt: skip
    with pytest.raises(ProposalRefused) as refused:
        construct(source, graph, found, {one.leader: directive for one in found}, Construction(producers))
    return str(refused.value)


def host(folder: Path, *before: str, body: str) -> Path:
    path = folder / "host.cu"
    path.write_text(HEAD + "".join(before) + STEP.format(body=body) + TAIL, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("before", "body", "said"),
    [
        (
            "#define ALL(x) ncclAllGather(x, x, 4, ncclFloat, ctx->comm, s)\n",
            "  ALL(x);",
            r"line 5: ALL stands for ncclAllGather, .*\. Write ncclAllGather\(",
        ),
        (
            "#define GATHER ncclAllGather\n",
            GATHER.replace("ncclAllGather", "GATHER"),
            r"line 5: GATHER stands for ncclAllGather, .*\. Write ncclAllGather\(",
        ),
        (
            "static void begin() { ncclGroupStart(); }\n",
            "  begin();\n  ncclSend(x, 4, ncclFloat, 1, ctx->comm, s);\n  ncclGroupEnd();",
            "line 6: the group of ncclSend starts or ends in another function.* Put ncclGroupStart",
        ),
    ],
)  # fmt: skip
def test_calls(tmp_path: Path, before: str, body: str, said: str) -> None:
    assert re.match(said, refusal(host(tmp_path, before, body=body)))


def test_a_call_in_a_header(tmp_path: Path) -> None:
    (tmp_path / "mine.h").write_text(
        "static void gather(const cuco_ctx *ctx, float *x, cudaStream_t s) {\n" + GATHER + "\n}\n"
    )
    said = refusal(host(tmp_path, '#include "mine.h"\n', body="  gather(ctx, x, s);"))
    assert said.startswith("line 2: ncclAllGather is called in mine.h, and only host.cu is rewritten. Move ")


@pytest.mark.parametrize(
    ("kernel", "launch", "said"),
    [
        (KERNEL, "  void *a[] = {&x};\n  cudaLaunchKernel((void *)fill, 4, 1, a, 0, s);",
         "line 6: fill is launched other than by <<<>>>, and the exchange that overlaps it holds its launch"),
        ("template <class T> " + KERNEL.replace("float", "T"), FILL,
         "line 2: fill is a template, and only the body of a plain kernel is copied for the overlap"),
    ],
)  # fmt: skip
def test_producers(tmp_path: Path, kernel: str, launch: str, said: str) -> None:
    path = host(tmp_path, kernel, body=f"{launch}\n{GATHER}")
    assert refusal(path, placement="Pipelined").startswith(said)


@pytest.mark.parametrize("placement", [Placement.PERSISTENT, Placement.TILE_FUSED])
def test_placements_that_do_not_fit_the_producer(tmp_path: Path, placement: Placement) -> None:
    said = refusal(host(tmp_path, KERNEL, body=f"{FILL}\n{GATHER}"), placement=placement, fits=False)
    assert said.startswith(f"line 6: ncclAllGather: fill does not fit {placement}: its thread blocks")
    assert said.endswith("or use Pipelined")


def test_a_reader_that_cannot_wait(tmp_path: Path) -> None:
    reader = "  void *a[] = {&x};\n  cudaLaunchKernel((void *)fill, 4, 1, a, 0, s);"
    kernel = KERNEL.replace("= 1", "+= 1")
    said = refusal(host(tmp_path, kernel, body=f"{GATHER}\n{reader}"), placement="StreamSplit")
    assert said.startswith("line 7: fill is launched other than by <<<>>>, and it reads what is received")


def test_designs_are_refused_at_the_line_of_the_call(tmp_path: Path) -> None:
    said = refusal(host(tmp_path, body=GATHER), placement="Pipelined")
    assert said.startswith("line 4: ncclAllGather: no map from the producer's")
    reduce = GATHER.replace("AllGather", "AllReduce").replace("Float,", "Float, ncclSum,")
    said = refusal(host(tmp_path, body=reduce), placement="StreamSplit")
    assert said.startswith("line 4: ncclAllReduce: the second half")
    assert said.endswith("Use placement Deferred")
