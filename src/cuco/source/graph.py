"""The CommGraph: what a CUDA and NCCL source launches, communicates and times. The JSON of contracts 5.

Field names of the contract stay; others were added. Every expression is a source text, with the parameters
of helper functions replaced by what the callers passed.
"""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict

#: How a kernel uses what a pointer or window parameter leads to. ``unknown``: assume it is read and written.
Access = Literal["read", "write", "read-write", "none", "unknown"]


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Parameter(_Model):
    """A kernel parameter. ``atomic``: some accesses are atomic; ``remote``: peers' memory is reached through
    it."""

    name: str
    type: str
    access: Access = "none"
    atomic: bool = False
    remote: bool = False


class Launch(_Model):
    """One launch site on one call path. ``block_size`` and ``grid_size`` are x, y, z texts where they are
    known; ``via`` is ``<<<>>>`` or the API function; ``buffers`` has per argument the names of the buffers
    it leads to."""

    line: int
    grid: str
    block: str
    stream: str
    args: tuple[str, ...]
    id: str
    shared: str = "0"
    grid_size: tuple[str, str, str] | None = None
    block_size: tuple[str, str, str] | None = None
    via: str = "<<<>>>"
    function: str = ""
    loop: bool = False
    conditional: bool = False
    cooperative: bool = False
    buffers: tuple[tuple[str, ...], ...] = ()
    call_lines: tuple[int, ...] = ()
    file: str = ""
    offset: int = 0
    loops: tuple[str, ...] = ()


class Kernel(_Model):
    """A ``__global__`` function. ``resolved`` is false for a launch through a pointer whose target is not
    known."""

    name: str
    line: int
    launches: tuple[Launch, ...] = ()
    end_line: int = 0
    file: str = ""
    parameters: tuple[Parameter, ...] = ()
    launch_bounds: tuple[str, ...] = ()
    template: bool = False
    resolved: bool = True


class Edge(_Model):
    """One NCCL communication on one call path.

    ``send`` and ``recv`` are buffer names (None where the call has no such side); ``peer`` is the peer of
    point-to-point calls, ``root`` that of rooted ones; ``call_lines`` are the lines of the calls that led
    here.
    """

    id: str
    op: str
    send: str | None
    recv: str | None
    count: str | None
    dtype: str | None
    peer: str | None
    comm: str | None
    stream: str | None
    line: int
    function: str
    group: int | None
    loop: bool
    root: str | None = None
    reduction: str | None = None
    send_offset: str | None = None
    recv_offset: str | None = None
    conditional: bool = False
    file: str = ""
    call_lines: tuple[int, ...] = ()
    offset: int = 0
    loops: tuple[str, ...] = ()


class Buffer(_Model):
    """Device memory. ``bytes`` is an expression; ``role``: in, out, inout, scratch, or unknown; ``windows``
    are the names of the windows registered over it."""

    name: str
    allocator: str
    bytes: str | None
    role: str
    line: int | None = None
    windows: tuple[str, ...] = ()


class CommGraph(_Model):
    """Kernels, edges, buffers and what flows between them.

    ``dependencies`` are (from, to, buffer): kernel names or edge ids, the buffer's last writer and its
    reader. ``carried`` are those that only exist from one turn of a loop to the next. ``device_calls``
    counts the calls of the device API by name; ``notes`` say what could not be resolved.
    """

    kernels: tuple[Kernel, ...] = ()
    edges: tuple[Edge, ...] = ()
    buffers: tuple[Buffer, ...] = ()
    dependencies: tuple[tuple[str, str, str], ...] = ()
    timed_region: tuple[int, int] | None = None
    carried: tuple[tuple[str, str, str], ...] = ()
    device_calls: dict[str, int] = {}
    communicators: tuple[str, ...] = ()
    streams: tuple[str, ...] = ()
    entry_points: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def edge(self, edge_id: str) -> Edge:
        """The edge of this id; KeyError where there is none."""
        for one in self.edges:
            if one.id == edge_id:
                return one
        raise KeyError(edge_id)

    def producers(self, edge_id: str) -> list[str]:
        """Kernels and edges whose output this edge sends."""
        return [start for start, end, _ in self.dependencies if end == edge_id]

    def consumers(self, edge_id: str) -> list[str]:
        """Kernels and edges that read what this edge receives."""
        return [end for start, end, _ in self.dependencies if start == edge_id]
