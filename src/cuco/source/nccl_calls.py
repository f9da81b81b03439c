"""NCCL's and CUDA's host functions as data: which argument means what."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Shape:
    """Argument positions of a communication call; None where the call has no such argument."""

    op: str
    send: int | None
    recv: int | None
    count: int | None
    dtype: int | None
    comm: int
    stream: int
    peer: int | None = None
    root: int | None = None
    reduction: int | None = None


COMMUNICATION: dict[str, Shape] = {
    "ncclAllReduce": Shape("AllReduce", 0, 1, 2, 3, 5, 6, reduction=4),
    "ncclReduceScatter": Shape("ReduceScatter", 0, 1, 2, 3, 5, 6, reduction=4),
    "ncclAllGather": Shape("AllGather", 0, 1, 2, 3, 4, 5),
    "ncclBroadcast": Shape("Broadcast", 0, 1, 2, 3, 5, 6, root=4),
    "ncclBcast": Shape("Broadcast", 0, 0, 1, 2, 4, 5, root=3),
    "ncclReduce": Shape("Reduce", 0, 1, 2, 3, 6, 7, root=5, reduction=4),
    "ncclAlltoAll": Shape("AlltoAll", 0, 1, 2, 3, 4, 5),
    "ncclGather": Shape("Gather", 0, 1, 2, 3, 5, 6, root=4),
    "ncclScatter": Shape("Scatter", 0, 1, 2, 3, 5, 6, root=4),
    "ncclSend": Shape("Send", 0, None, 1, 2, 4, 5, peer=3),
    "ncclRecv": Shape("Recv", None, 0, 1, 2, 4, 5, peer=3),
    "ncclPutSignal": Shape("PutSignal", 0, 4, 1, 2, 9, 10, peer=3),
    "ncclSignal": Shape("Signal", None, None, None, None, 4, 5, peer=0),
    "ncclWaitSignal": Shape("WaitSignal", None, None, None, None, 2, 3),
}

#: Allocation through an address of a pointer: positions of the pointer's address and of the byte count.
ALLOCATE_INTO: dict[str, tuple[int, int]] = {
    "cudaMalloc": (0, 1),
    "cudaMallocAsync": (0, 1),
    "cudaMallocManaged": (0, 1),
    "cudaMallocFromPoolAsync": (0, 1),
    "cudaMallocHost": (0, 1),
    "cudaHostAlloc": (0, 1),
    "ncclMemAlloc": (0, 1),
    "cudaMallocPitch": (0, 2),
}
#: Host memory that no kernel of interest computes on is left out of the buffers until something device-side
#: uses it.
HOST_ALLOCATORS = frozenset({"cudaMallocHost", "cudaHostAlloc"})

#: Copies: positions of destination, source, byte count and kind; -1 where missing.
COPIES: dict[str, tuple[int, int, int, int]] = {
    "cudaMemcpy": (0, 1, 2, 3),
    "cudaMemcpyAsync": (0, 1, 2, 3),
    "cudaMemcpyPeer": (0, 2, 4, -1),
    "cudaMemcpyPeerAsync": (0, 2, 4, -1),
    "cudaMemcpy2DAsync": (0, 2, 5, 6),
    "cudaMemcpy2D": (0, 2, 5, 6),
}
FILLS = frozenset({"cudaMemset", "cudaMemsetAsync", "cudaMemset2DAsync"})

LAUNCHES: dict[str, int] = {
    "cudaLaunchKernel": 0,
    "cudaLaunchCooperativeKernel": 0,
    "cudaLaunchKernelExC": 1,
    "cudaLaunchKernelEx": 1,
}
CLOCKS = frozenset({"MPI_Wtime", "clock_gettime", "gettimeofday", "clock", "omp_get_wtime", "now", "time"})


def strip_profiling(name: str) -> str:
    """NCCL's profiling entry points (``pncclSend``) do what the plain ones do."""
    return name[1:] if name.startswith("pnccl") else name
