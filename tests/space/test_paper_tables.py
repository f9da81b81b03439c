"""Every value of the CUCo paper's Table 2 and every row of its Tables 3 and 4 parses as written.

The rows below are the tables of arXiv 2603.02376 in the typography of their published text.
"""

from __future__ import annotations

import pytest

from cuco.space import (
    Directive,
    Granularity,
    Issuer,
    SpaceContext,
    parse_choices,
    parse_row,
    presets,
    validate,
)
from cuco.space.dimensions import Backend, Ordering, Placement, Readiness, Scope, Sync
from cuco.space.notation import parse_dimension

TABLE_2 = {
    "backend": ("$\\mathcal{B}$ : Backend\tGIN \\| LSA \\| Hybrid", list(Backend)),
    "sync": ("$\\mathcal{M}$ : Sync Mechanism\tBarrier \\| Signal \\| SignalShadow \\| Counter", list(Sync)),
    "issuer": (
        "$\\mathcal{I}$ : Issuer\tThread \\| Warp \\| WarpSpan \\| Tile⟨N⟩ \\| CTA",
        [Issuer.model_validate(name) for name in ("Thread", "Warp", "WarpSpan", "Tile(N)", "CTA")],
    ),
    "ordering": ("$\\mathcal{O}$ : Ordering\tRelaxed \\| Acquire \\| Release \\| AcqRel", list(Ordering)),
    "contexts": ("$\\mathcal{K}$ : Contexts\t$1$ \\| $2$ \\| $N$", [1, 2, "N"]),
}

TABLE_3 = """\
DeepEP (NVL)\tLSA\tBarrier\tDeferred\tLocal\tCTA\tPer-peer\tRelease\t–
DeepEP (IB)\tGIN\tSignal\tDeferred\tWorld\tCTA\tPer-peer\tAcquire\t1
FLUX\tLSA\tBarrier\tTile-fused\tLocal\tWarp\tPer-tile\tAcqRel\t–"""

TABLE_4 = {
    "Flash Attention": (
        "$\\mathcal{P}$ : tile-fused; $\\mathcal{M}$ : counter; $\\mathcal{I}$ : CTA (1 comm + 80 compute)",
        {
            "placement": Placement.TILE_FUSED,
            "readiness": Readiness.COUNTER,
            "issuer": Issuer(kind="CTA"),
            "comm_ctas": 1,
        },
    ),
    "MoE": (
        "$\\mathcal{B}$ : GIN (inter-node); $\\mathcal{P}$ : stream-split; $\\mathcal{G}$ : per-peer",
        {
            "backend": Backend.GIN,
            "placement": Placement.STREAM_SPLIT,
            "granularity": Granularity(kind="PerPeer"),
        },
    ),
    "KV-Cache Transfer": (
        "$\\mathcal{I}$ : device; $\\mathcal{O}$ : release; $\\mathcal{M}$ : signal",
        {"issuer": Issuer(kind="Device"), "ordering": Ordering.RELEASE, "sync": Sync.SIGNAL},
    ),
    "GEMM + AllGather": (
        "$\\mathcal{P}$ : deferred; $\\mathcal{B}$ : LSA (intra) / GIN (inter)",
        {"placement": Placement.DEFERRED, "backend": Backend.HYBRID},
    ),
}


@pytest.mark.parametrize("field", TABLE_2)
def test_table_2_values_parse(field: str) -> None:
    row, expected = TABLE_2[field]
    assert parse_dimension(row) == (field, expected)


def test_table_3_rows_parse_and_are_the_presets() -> None:
    rows = dict(parse_row(line) for line in TABLE_3.splitlines())
    by_title = {preset.title: preset.directive for preset in presets().values()}
    assert len(rows) == 3
    for title, directive in rows.items():
        assert by_title[title] == directive
        assert validate(directive, SpaceContext(ranks=8)) == []


def test_table_3_values_are_what_the_paper_means() -> None:
    flux = parse_row(TABLE_3.splitlines()[2])[1]
    assert flux == Directive(
        backend=Backend.LSA,
        sync=Sync.BARRIER,
        placement=Placement.TILE_FUSED,
        scope=Scope.LSA,
        issuer=Issuer(kind="Warp"),
        granularity=Granularity(kind="PerTile"),
        ordering=Ordering.ACQ_REL,
    )


@pytest.mark.parametrize("workload", TABLE_4)
def test_table_4_choices_parse(workload: str) -> None:
    row, expected = TABLE_4[workload]
    assert parse_choices(row).chosen() == expected


def test_partial_choices_complete_to_a_directive() -> None:
    base = presets()["deepep-ib"].directive
    full = parse_choices(TABLE_4["MoE"][0]).complete(base)
    assert full.placement is Placement.STREAM_SPLIT and full.sync is base.sync
