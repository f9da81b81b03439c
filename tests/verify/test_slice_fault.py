"""A slice that does not hold is no fault of the candidate; anything else that the timed run finds is."""

from __future__ import annotations

import pytest

from cuco.testbed.findings import Finding
from cuco.verify.tracing import MeasurementRejected, slice_fault


def test_a_slice_that_fails_becomes_the_reason_for_running_whole() -> None:
    why = "the timing slice does not hold: x decides control"
    assert slice_fault(MeasurementRejected([Finding("unsupported", "slice", why)])) == why


@pytest.mark.parametrize("kind", ["deadlock", "unsupported", "out-of-bounds"])
def test_other_findings_stay_rejections(kind: str) -> None:
    slice_too = Finding("unsupported", "slice", "the timing slice does not hold")
    error = MeasurementRejected([slice_too, Finding(kind, "run", "something real")])
    with pytest.raises(MeasurementRejected):
        slice_fault(error)
