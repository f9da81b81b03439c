"""Evolve blocks of generated candidates: they hold all that is rewritten, and the rest is always the same."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from cuco.errors import UsageError
from cuco.propose.builtin import BuiltinProposer
from cuco.propose.builtin.config import ProducerMap
from cuco.propose.builtin.construct import Construction, construct
from cuco.propose.builtin.exchange import exchanges
from cuco.propose.builtin.runtime import designs_in
from cuco.propose.builtin.source_map import Producer
from cuco.propose.protocol import ProposalRefused
from cuco.source import CommGraph, analyze, evolve
from cuco.source.edit import SourceFile
from cuco.space import Directive, SpaceContext
from cuco.space.dimensions import Placement
from cuco.workload import load_workload

WORKLOADS = ["gemm_allgather", "kv_transfer", "micro/allgather", "micro/alltoall", "micro/allreduce",
             "micro/ring_shift", "micro/producer_consumer"]  # fmt: skip
#: What stands where the user's calls and launches stood, and kernels that stand for the user's.
REWRITTEN = re.compile(r"cuco_gen::(edge\d+_\w+|hold|join|inherit)\(|\w+_body\(|__global__ .* \w+_edge\d+\(")
#: What verification leans on.
INFRASTRUCTURE = ("ncclDevCommCreate", "ncclCommWindowRegister", "kControlWords", "inline int producer_map",
                  'extern "C" int cuco_prepare', "more ranks than this candidate was made for")  # fmt: skip

HOST = """\
#include "cuco.h"
{before}
__global__ void fill(float *x) {{ {inside} x[blockIdx.x] = 1; }}
static int send(const cuco_ctx *ctx, cudaStream_t stream) {{
  float *x = (float *)ctx->buffers[0].ptr;
{step}
}}
extern "C" int cuco_prepare(const cuco_ctx *, void **) {{ return 0; }}
extern "C" int cuco_launch(const cuco_ctx *ctx, void *, cudaStream_t stream) {{ return send(ctx, stream); }}
extern "C" int cuco_finish(const cuco_ctx *, void *) {{ return 0; }}
"""
PLAIN = """\
  for (int i = 0; i < 1; i++)
    fill<<<4, 1, 0, stream>>>(x);
  return ncclAllGather(x, x, 4, ncclFloat, ctx->comm, stream);"""
START, END = f"  // {evolve.START}", f"  // {evolve.END}"


def producer(graph: CommGraph, name: str) -> Producer:
    place = next(kernel for kernel in graph.kernels if kernel.name == name).launches[0]
    return Producer(name, place.file, place.offset, ProducerMap(1, 0), 1 << 20, True, True, True)


def candidates(path: Path) -> Mapping[str, str]:
    """One text per placement and backend that the built-in proposer offers for a source, and stage A's."""
    graph, source = analyze(path), SourceFile.read(path)
    found = exchanges(graph)
    kernels = {kernel.name for kernel in graph.kernels}
    producers = {
        one.leader: producer(graph, name)
        for one in found
        for name in [name for call in one.calls for name in graph.producers(call) if name in kernels][:1]
    }
    contexts = {c: SpaceContext(ranks=4, lsa_team=2, op=one.ops[0]) for one in found for c in one.calls}
    inside = {c: context.model_copy(update={"lsa_team": 4}) for c, context in contexts.items()}
    texts: dict[str, str] = {}
    for where in (contexts, inside):
        offered = BuiltinProposer(path, producers=producers).options(graph, where)
        chosen: dict[tuple[str, ...], dict[str, Directive]] = {}
        for one in found:
            for directive in offered[one.leader]:
                kind = (directive.backend, directive.placement, directive.sync)
                chosen.setdefault(kind, {}).setdefault(one.leader, directive)
        for kind, design in chosen.items():
            if len(design) == len(found):
                known = Construction(producers=producers)
                texts["/".join(kind)] = construct(source, graph, found, design, known)
                stage = Construction(producers=producers, replace=False)
                texts[f"A/{kind[0]}"] = construct(source, graph, found, design, stage)
    return texts


def mutable(text: str) -> list[tuple[int, int]]:
    return [(span.start, span.end) for span in evolve.parse(text).blocks]


@pytest.mark.parametrize("name", WORKLOADS)
def test_every_candidate_of_a_workload_has_the_same_frozen_text(name: str) -> None:
    texts = candidates(load_workload(name).host_source)
    frozen = {evolve.parse(text).frozen for text in texts.values()}
    assert len(frozen) == 1 and {key.split("/")[0] for key in texts} == {"A", "LSA", "GIN", "Hybrid"}
    assert not [one for one in INFRASTRUCTURE if one not in "".join(*frozen)]
    changed = 0
    for key, text in texts.items():
        blocks = mutable(text)
        for found in REWRITTEN.finditer(text):
            if text[: found.start()].endswith("inline ncclResult_t "):
                continue
            changed += 1
            assert any(start <= found.start() < end for start, end in blocks), (key, found.group())
        names = [span.name for span in evolve.parse(text).blocks]
        assert not [one for one in names if one.startswith("block")], "blocks are named"
    edges = {edge.id for edge in analyze(load_workload(name).host_source).edges}
    for key, text in texts.items():
        designs = designs_in(text)
        assert set(designs) == edges and {str(one.backend) for one in designs.values()} <= set(key.split("/"))
    assert changed >= len([key for key in texts if not key.startswith("A/")])
    if name in ("gemm_allgather", "kv_transfer"):
        assert {str(one) for one in Placement} <= {key.split("/")[1] for key in texts}


def test_stage_a_is_stage_b_with_empty_blocks() -> None:
    texts = candidates(load_workload("micro/allreduce").host_source)
    first, second = evolve.parse(texts["A/GIN"]), evolve.parse(texts["GIN/Deferred/Barrier"])
    assert "ncclAllReduce(" in first.block("cuco_launch").text and "exchange<" not in first.text
    filled = first.replace_all({span.name: span.text for span in second.blocks})
    assert filled.text == second.text


def written(tmp_path: Path, *, before: str = "", inside: str = "", step: str = PLAIN) -> Path:
    path = tmp_path / "host.cu"
    path.write_text(HOST.format(before=before, inside=inside, step=step), encoding="utf-8")
    return path


def blocks_of(path: Path) -> dict[str, str]:
    texts = candidates(path)
    assert len({evolve.parse(text).frozen for text in texts.values()}) == 1
    found = evolve.parse(texts["LSA/Persistent/Signal"]).blocks
    return {span.name: span.text for span in found if "cuco_gen" not in span.name}


def test_without_blocks_of_the_users_there_is_one_per_kernel_and_per_step_function(tmp_path: Path) -> None:
    found = blocks_of(written(tmp_path))
    assert list(found) == ["fill", "send"]
    assert "fill_edge0" in found["fill"] and found["fill"].count("__global__") == 2
    assert found["send"].startswith("  for (int") and found["send"].endswith("stream);\n")


def test_the_users_blocks_stay_and_get_names(tmp_path: Path) -> None:
    lines = PLAIN.splitlines()
    step = "\n".join([*lines[:2], START, lines[2], END])
    found = blocks_of(written(tmp_path, step=step))
    assert list(found) == ["fill", "send", "send_2"]
    assert "cuco_gen::hold" in found["send"]
    assert found["send_2"].startswith("  return cuco_gen::edge0_AllGather(")


def test_a_block_inside_a_kernel_is_not_drawn_over_and_not_copied(tmp_path: Path) -> None:
    found = blocks_of(written(tmp_path, inside=f"\n{START} body\n  x[0] = 2;\n{END}\n"))
    assert list(found) == ["body", "fill", "send"]
    assert found["body"] == "  x[0] = 2;\n" and "fill_edge0" in found["fill"]


def test_a_block_inside_a_statement_keeps_the_statement_out(tmp_path: Path) -> None:
    step = PLAIN.replace("    fill", f"  {{\n{START} loop\n    fill").replace("(x);", f"(x);\n{END}\n  }}")
    found = blocks_of(written(tmp_path, step=step))
    assert list(found) == ["fill", "loop", "send"]
    assert "hold" in found["loop"] and found["send"].startswith("  return")


def test_a_user_block_where_frozen_code_has_to_go_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path)
    path.write_text(f"{START}\n{path.read_text()}{END}\n", encoding="utf-8")
    with pytest.raises(ProposalRefused, match="^line 1: .*holds the includes.*Begin it behind the includes"):
        candidates(path)


def test_malformed_markers_are_named_with_file_and_line(tmp_path: Path) -> None:
    path = written(tmp_path, before=START)
    with pytest.raises(UsageError, match="host.cu, line 2: EVOLVE-BLOCK-START without EVOLVE-BLOCK-END"):
        candidates(path)
    path = written(tmp_path, before=f"{START} cuco_gen.lsa\n{END}")
    with pytest.raises(UsageError, match="there is already an evolve block cuco_gen.lsa"):
        candidates(path)
