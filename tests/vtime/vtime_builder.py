"""Builds small traces by hand, in the words of trace schema v1."""

from __future__ import annotations

import json
from typing import Any

from cuco.testbed.vtime.trace import Trace, parse_trace

CLASSES = [
    "int",
    "fp32",
    "fp64",
    "fp16",
    "special",
    "mma_bf16",
    "ld_global",
    "st_global",
    "ld_shared",
    "st_shared",
    "atomic",
    "bar",
]


def work(**counts: float) -> list[float]:
    """A class vector."""
    unknown = set(counts) - set(CLASSES)
    assert not unknown, unknown
    return [counts.get(name, 0) for name in CLASSES]


def phase(
    remote: list[list[float]] | None = None, strands: list[Any] | None = None, mp: float = 0, **counts: float
) -> dict[str, Any]:
    """A phase record."""
    found: dict[str, Any] = {"w": work(**counts), "mp": mp}
    if remote:
        found["r"] = remote
    if strands:
        found["s"] = strands
    return found


class Builder:
    """Collects records; ``trace()`` parses them as the reader would."""

    def __init__(self, ranks: int = 1, lsa_team: int | None = None, regs: int = 32) -> None:
        self.ranks = ranks
        self.header: dict[str, Any] = {
            "trace": 1,
            "ranks": ranks,
            "lsa_team": lsa_team or ranks,
            "classes": CLASSES,
            "kernels": [{"id": 0, "name": "kernel", "regs": regs, "smem": 0, "launch_bounds": 0}],
            "sliced": False,
        }
        self.records: list[dict[str, Any]] = []
        self.launches = 0

    def host(self, rank: int, op: str, stream: int = 0, **args: Any) -> None:
        self.records.append({"h": rank, "op": op, "stream": stream, **args})

    def launch(
        self,
        rank: int,
        ctas: list[list[Any]],
        *,
        threads: int = 256,
        stream: int = 0,
        smem: int = 0,
        priority: int = 0,
        kernel: int = 0,
        **more: Any,
    ) -> int:
        number = self.launches
        self.launches += 1
        self.host(
            rank,
            "launch",
            stream,
            id=number,
            kernel=kernel,
            grid=[len(ctas), 1, 1],
            block=[threads, 1, 1],
            smem=smem,
            coop=False,
            priority=priority,
            **more,
        )
        for index, phases in enumerate(ctas):
            self.records.append({"c": [number, index], "p": phases})
        return number

    def word(self, number: int, rank: int, name: str = "") -> None:
        self.records.append({"word": number, "rank": rank, "name": name})

    def nic(self, number: int, src: int, dst: int, size: float, **more: Any) -> None:
        base = {"ctx": 0, "kind": "put", "sig": None, "ctr": None, "done": None, "strong": False}
        self.records.append({"n": number, "src": src, "dst": dst, "bytes": size, **base, **more})

    def step(self, number: int, body: Any) -> None:
        """A step on all ranks: barrier, marks, and a synchronisation at its end."""
        for rank in range(self.ranks):
            self.host(rank, "barrier", id=number)
            self.host(rank, "mark", name="begin", step=number)
            body(rank)
            self.host(rank, "mark", name="end", step=number)
            self.host(rank, "device_sync")

    def lines(self) -> list[str]:
        return [json.dumps(self.header)] + [json.dumps(record) for record in self.records]

    def trace(self) -> Trace:
        return parse_trace(self.lines())
