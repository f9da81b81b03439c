"""Does the workload's own tolerance tell right from wrong? An audit by mutants, before anything is judged
with it.

Each mutant is a result that a lazy candidate might return: zeros, the result of another step, the result with
one rank's data left out. A tolerance that accepts one that really differs is useless, and says so (kind
``tolerance``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from cuco.testbed.findings import Finding
from cuco.verify.data import StepData

Array = npt.NDArray[Any]
Outputs = Sequence[Mapping[str, Array]]


def audit_tolerance(data: StepData) -> list[Finding]:
    """Findings of kind ``tolerance``: which output accepts which mutant on every rank that has it."""
    want = data.reference(0)
    findings = []
    for label, mutant in _mutants(data):
        for name in data.workload.spec.outputs:
            if _accepted_everywhere(data, name, want, mutant):
                message = f"the tolerance of '{name}' accepts {label}"
                findings.append(Finding("tolerance", "mutant", message, buffer=name))
    return findings


def _mutants(data: StepData) -> Iterator[tuple[str, Outputs]]:
    want = data.reference(0)
    yield "zeros", [{name: np.zeros_like(array) for name, array in item.items()} for item in want]
    yield "the result of another step", data.reference(1)
    for rank in range(data.ranks):
        inputs = [dict(item) for item in data.inputs(0)]
        inputs[rank] = {name: np.zeros_like(array) for name, array in inputs[rank].items()}
        yield f"results without the data of rank {rank}", data.workload.reference(inputs, data.params)


def _accepted_everywhere(data: StepData, name: str, want: Outputs, mutant: Outputs) -> bool:
    """Whether the mutant differs from the reference on some rank, and no rank's comparison notices."""
    differs = False
    for rank in range(data.ranks):
        if name not in want[rank]:
            continue
        dtype = next(b.dtype for b in data.workload.buffers(rank, data.ranks, data.params) if b.name == name)
        got, expected = mutant[rank][name].astype(dtype.numpy), want[rank][name].astype(dtype.numpy)
        differs |= got.tobytes() != expected.tobytes()
        for comparison in data.workload.compare(rank, {name: got}, {name: want[rank][name]}):
            if not comparison.ok:
                return False
    return differs
