"""Inputs and references of a run's steps, made once and kept while the run is judged."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy.typing as npt

from cuco.workload import BufferInfo, Workload

Array = npt.NDArray[Any]


class StepData:
    """Everything the trusted side knows about the data of one run: a function of the run's secret."""

    def __init__(
        self, workload: Workload, secret: bytes, ranks: int, params: Mapping[str, int | float]
    ) -> None:
        self.workload = workload
        self.secret = secret
        self.ranks = ranks
        self.params = dict(params)
        self._inputs: dict[int, list[dict[str, Array]]] = {}
        self._references: dict[int, list[dict[str, Array]]] = {}

    def inputs(self, step: int) -> list[dict[str, Array]]:
        """Per rank the inputs of a step."""
        if step not in self._inputs:
            self._inputs[step] = [
                self.workload.inputs(self.secret, step, rank, self.ranks, self.params)
                for rank in range(self.ranks)
            ]
        return self._inputs[step]

    def reference(self, step: int) -> list[dict[str, Array]]:
        """Per rank the expected outputs of a step."""
        if step not in self._references:
            self._references[step] = self.workload.reference(self.inputs(step), self.params)
        return self._references[step]

    def suspects(self, step: int, rank: int, buffer: BufferInfo) -> list[tuple[str, Array]]:
        """What wrong data in this output could be, with words for it."""
        found: list[tuple[str, Array]] = []
        for name, array in self.inputs(step)[rank].items():
            found.append((f"the input '{name}' of rank {rank}", array))
        for earlier in range(step - 1, max(-1, step - 4), -1):
            if buffer.name in self.reference(earlier)[rank]:
                found.append(
                    (f"the result of earlier step {earlier}", self.reference(earlier)[rank][buffer.name])
                )
        for other in range(self.ranks):
            if other != rank and buffer.name in self.reference(step)[other]:
                found.append((f"the result of rank {other}", self.reference(step)[other][buffer.name]))
        for other in range(self.ranks):
            for name, array in self.inputs(step)[other].items():
                if other != rank:
                    found.append((f"the input '{name}' of rank {other}", array))
        return found
