"""A cheap guess of how fast an untried design is, from the designs already timed.

A ridge regression of the logarithm of time on the values of each dimension: with a dozen results it cannot be
right, but it prefers values that have done well, which is all that it is asked for.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from cuco.search.records import Design
from cuco.space.directive import Directive

_RIDGE = 0.3


def features(design: Design) -> dict[str, float]:
    """Dimension=value pairs of a design; for several edges, the share of edges that have each."""
    found: dict[str, float] = {}
    for directive in design.values():
        for name in Directive.model_fields:
            value = f"{name}={getattr(directive, name)}"
            found[value] = found.get(value, 0.0) + 1.0 / len(design)
        if directive.granularity.bytes is not None:
            size = math.log2(directive.granularity.bytes) / 10
            found["log chunk"] = found.get("log chunk", 0.0) + size / len(design)
    return found


def predict(timed: Sequence[tuple[Design, float]], designs: Sequence[Design]) -> list[float]:
    """Guessed times in microseconds for ``designs``, given at least one (design, microseconds) pair."""
    import numpy as np

    known = [features(design) for design, _ in timed]
    asked = [features(design) for design in designs]
    names = sorted({name for one in known for name in one})
    column = {name: index for index, name in enumerate(names)}

    def matrix(rows: Sequence[dict[str, float]]) -> np.ndarray:
        values = np.zeros((len(rows), len(names)))
        for index, row in enumerate(rows):
            for name, value in row.items():
                if name in column:
                    values[index, column[name]] = value
        return values

    train = matrix(known)
    target = np.log([us for _, us in timed])
    centre, mean = train.mean(axis=0), target.mean()
    centred = train - centre
    system = centred.T @ centred + _RIDGE * np.eye(len(names))
    weights = np.linalg.solve(system, centred.T @ (target - mean))
    guessed = (matrix(asked) - centre) @ weights + mean
    return [float(value) for value in np.exp(guessed)]
