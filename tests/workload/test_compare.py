"""Comparison: tolerances, NaN, and the guess at where wrong data came from."""

import ml_dtypes
import numpy as np

from cuco.workload import Output, Suspicions, compare_array

WANT = np.arange(12, dtype=np.float64).reshape(3, 4) + 1
TOLERANT = Output(rtol=0.01, tile=(2, 2))
EXACT = Output(exact=True)


def test_within_tolerance() -> None:
    assert compare_array(0, "y", (WANT * 1.009).astype(np.float32), WANT, TOLERANT).ok
    assert not compare_array(0, "y", (WANT * 1.011).astype(np.float32), WANT, TOLERANT).ok


def test_exact_means_exact() -> None:
    got = WANT.astype(np.float32)
    assert compare_array(0, "y", got, WANT, EXACT).ok
    got[1, 2] = np.nextafter(got[1, 2], np.float32(100))
    found = compare_array(0, "y", got, WANT, EXACT)
    assert found.wrong == 1 and found.first[0].index == (1, 2)


def test_nan_and_infinity_are_wrong() -> None:
    for value in (np.nan, np.inf, -np.inf):
        got = WANT.astype(np.float32)
        got[0, 0] = value
        assert compare_array(0, "y", got, WANT, TOLERANT).wrong == 1
        assert compare_array(0, "y", got, WANT, EXACT).wrong == 1


def test_mismatch_says_where() -> None:
    got = WANT.astype(ml_dtypes.bfloat16)
    got[2, 3] = 40
    found = compare_array(3, "y", got, WANT, TOLERANT)
    assert found.first[0].index == (2, 3) and found.first[0].tile == (1, 1)
    assert "rank 3 'y': 1 of 12" in str(found) and "[2, 3] (tile [1, 1]) is 40, want 12" in str(found)


def test_guesses() -> None:
    got = WANT.astype(np.float32)
    poisoned = got.copy()
    poisoned.view(np.uint8)[1] = 0xFF
    assert "never written" in compare_array(0, "y", poisoned, WANT, EXACT, Suspicions(0xFF)).guess
    zero = got.copy()
    zero[0] = 0
    assert compare_array(0, "y", zero, WANT, EXACT, Suspicions(0xFF)).guess == "they are zero"
    stale = WANT + 100
    mixed = got.copy()
    mixed[1] = stale[1]
    found = compare_array(0, "y", mixed, WANT, EXACT, Suspicions(0xFF, [("the result of step 0", stale)]))
    assert found.guess == "they equal the result of step 0"


def test_exact_integers_beyond_float64() -> None:
    want = np.array([2**60 + 1], dtype=np.int64)
    assert compare_array(0, "y", want.copy(), want, EXACT).ok
    assert not compare_array(0, "y", want + 1, want, EXACT).ok
