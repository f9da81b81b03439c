"""Comments, layout and names do not make a candidate new; a constant does."""

from __future__ import annotations

import numpy as np
import pytest

from cuco.search.novelty import novelty, source_hash, vector

CODE = """
#define N 4
__global__ void scale(float *data, int count) {  // one element per thread
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) data[i] *= 256.0f;
  ncclBarrier("a // b");
}
"""


def hashed(text: str) -> str:
    return source_hash({"candidate.cu": text})


def test_comments_and_layout_do_not_count() -> None:
    other = CODE.replace("// one element per thread", "/* many */").replace("  int i", "\n\n\tint   i")
    assert hashed(other) == hashed(CODE)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("256.0f", "128.0f"),
        ("scale", "stretch"),
        ('"a // b"', '"a // c"'),
        ("#define N 4\n", "#define N 4 "),
        ("i < count", "i << count"),
    ],
)
def test_everything_else_counts(old: str, new: str) -> None:
    assert hashed(CODE.replace(old, new)) != hashed(CODE)


def test_a_directive_inside_a_comment_is_a_comment() -> None:
    assert hashed(CODE.replace("#define N 4", "#define N 4\n/*\n#define M 5\n*/")) == hashed(CODE)


def test_renaming_changes_no_vector_but_constants_do() -> None:
    base = vector({"a": CODE})
    assert np.array_equal(vector({"a": CODE.replace("data", "values").replace("scale", "k")}), base)
    assert not np.array_equal(vector({"a": CODE.replace("256", "128")}), base)
    assert not np.array_equal(vector({"a": CODE.replace("ncclBarrier", "ncclSignal")}), base)


def test_novelty_is_1_alone_and_0_for_a_copy() -> None:
    one, two = vector({"a": CODE}), vector({"a": CODE.replace("*=", "+=") * 3})
    assert novelty(one, []) == 1.0
    assert novelty(one, [two, one]) == pytest.approx(0.0, abs=1e-6)
    assert 0 < novelty(two, [one]) <= 1
