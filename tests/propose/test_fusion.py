"""Maps from producer CTAs to bytes: found where they exist, refused where they do not."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from cuco.propose.builtin.config import ProducerMap
from cuco.propose.builtin.fusion import WriteSample, fit_map


def tiled(rows: int, cols: int, tile: int, element: int = 2, swizzle: int = 1) -> WriteSample:
    """A row-major [rows, cols] matrix written in tile x tile CTAs; ``swizzle`` > 1 walks groups of rows
    column first."""
    gx, gy = cols // tile, rows // tile
    writes = []
    for cta in range(gx * gy):
        x, y = cta % gx, cta // gx
        if swizzle > 1:
            group = cta // (swizzle * gx)
            y, x = group * swizzle + cta % swizzle, cta % (swizzle * gx) // swizzle
        writes.append(
            [
                (
                    ((y * tile + r) * cols + x * tile) * element,
                    ((y * tile + r) * cols + (x + 1) * tile) * element,
                )
                for r in range(tile)
            ]
        )
    return WriteSample((gx, gy, 1), rows * cols * element, writes)


def elementwise(n: int, block: int, element: int = 4) -> WriteSample:
    ctas = -(-n // block)
    return WriteSample(
        (ctas, 1, 1),
        n * element,
        [[(i * block * element, min(n, (i + 1) * block) * element)] for i in range(ctas)],
    )


def test_rows_of_tiles_map_by_y() -> None:
    assert fit_map([tiled(64, 64, 16), tiled(128, 64, 16), tiled(96, 128, 16)]) == ProducerMap(1, 0)


def test_elementwise_maps_by_x_with_its_block() -> None:
    samples = [elementwise(1000, 256), elementwise(4096, 256), elementwise(2049, 256)]
    assert fit_map(samples) == ProducerMap(0, 1024)


def test_grouped_rasterisation_has_no_map() -> None:
    assert (
        fit_map([tiled(64, 64, 16, swizzle=4), tiled(128, 64, 16, swizzle=4), tiled(128, 128, 16, swizzle=4)])
        is None
    )


def test_too_few_sizes_are_not_believed() -> None:
    assert fit_map([tiled(64, 64, 16)] * 4) is None
    assert fit_map([tiled(64, 64, 16), tiled(128, 64, 16)]) is None


def test_a_hole_in_what_is_written_means_another_producer() -> None:
    samples = [tiled(64, 64, 16), tiled(128, 64, 16), tiled(96, 128, 16)]
    samples[1].writes[0].pop()  # type: ignore[attr-defined]
    assert fit_map(samples) is None


@given(
    st.lists(st.integers(1, 40).map(lambda k: 16 * k), min_size=3, max_size=5, unique=True),
    st.sampled_from([16, 32, 48]),
)
def test_a_map_contains_every_write(rows: list[int], cols: int) -> None:
    samples = [tiled(r, cols, 16) for r in rows]
    found = fit_map(samples)
    assert found is not None
    for sample in samples:
        counts = (*sample.grid, sample.grid[0] * sample.grid[1])
        unit = found.unit or sample.bytes // counts[found.axis]
        for cta, intervals in enumerate(sample.writes):
            i = (cta % sample.grid[0], cta // sample.grid[0], 0, cta)[found.axis]
            assert all(i * unit <= begin and end <= (i + 1) * unit for begin, end in intervals)
