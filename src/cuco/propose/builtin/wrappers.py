"""Kernels that stand for the user's own where an exchange overlaps its producer.

The user's kernel stays as it is. Its body is copied into a device function, in which ``blockIdx`` and
``gridDim`` become parameters, and a wrapper per overlapped edge calls it and then publishes, or sends, what
the CTA has completed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cuco.propose.builtin.config import EdgeConfig
from cuco.space.dimensions import Placement

_GEN = "cuco_gen"


@dataclass(frozen=True)
class KernelText:
    """A kernel's definition: ``parameters`` as (declaration, name), ``bounds`` the text of its launch bounds
    or "", ``body`` with braces, in which ``blockIdx`` and ``gridDim`` already read ``cuco_cta`` and
    ``cuco_grid``."""

    name: str
    parameters: tuple[tuple[str, str], ...]
    bounds: str
    body: str

    @property
    def declarations(self) -> str:
        return ", ".join(declaration for declaration, _ in self.parameters)

    @property
    def names(self) -> str:
        return ", ".join(name for _, name in self.parameters)


@dataclass(frozen=True)
class LaunchText:
    """A launch as written: the four texts between <<< and >>>, and the arguments."""

    kernel: str
    grid: str
    block: str
    shared: str
    stream: str
    arguments: str

    def plain(self) -> str:
        return f"{self.kernel}<<<{self.grid}, {self.block}, {self.shared}, {self.stream}>>>({self.arguments})"


def wrapper_name(kernel: str, edge: EdgeConfig) -> str:
    return f"{kernel}_edge{edge.index}"


def _list(*parts: str) -> str:
    return ", ".join(part for part in parts if part)


def wrappers(kernel: KernelText, edges: Sequence[EdgeConfig]) -> str:
    """The body as a device function and one wrapper per edge."""
    bounds = f" {kernel.bounds}" if kernel.bounds else ""
    text = (
        f"\n// The body of {kernel.name}, for launches that an exchange overlaps;"
        f" cuco_cta and cuco_grid stand for blockIdx and gridDim.\n"
        f"static __device__ __forceinline__ void {kernel.name}_body("
        f"{_list(kernel.declarations, 'const dim3 cuco_cta', 'const dim3 cuco_grid')}) {kernel.body}\n"
    )
    for edge in edges:
        head = f"__global__ void{bounds} {wrapper_name(kernel.name, edge)}({_parameters(kernel, edge)})"
        text += f"\n{head} {{\n{_body(kernel, edge)}}}\n"
    return text


def _parameters(kernel: KernelText, edge: EdgeConfig) -> str:
    own = f"{_GEN}::ProducerMap cuco_map"
    if edge.placement is not Placement.PIPELINED:
        own = f"{_GEN}::Device cuco_device, {_GEN}::Plan cuco_plan, {own}"
    if edge.placement is Placement.PERSISTENT:
        own += ", dim3 cuco_grid"
    return _list(own, kernel.declarations)


def _body(kernel: KernelText, edge: EdgeConfig) -> str:
    name = f"{_GEN}::{edge.name}"
    if edge.placement is Placement.PERSISTENT:
        return (
            f"  if (blockIdx.x < {name}::kCtas) {{\n"
            f"    {_GEN}::exchange_cta<{name}>(cuco_device, cuco_plan, cuco_map, blockIdx.x);\n"
            f"    return;\n  }}\n"
            f"  const dim3 cuco_cta = {_GEN}::producer_cta(cuco_grid, {name}::kCtas);\n"
            f"  {kernel.name}_body({_list(kernel.names, 'cuco_cta', 'cuco_grid')});\n"
            f"  {_GEN}::publish<{name}>(cuco_map, cuco_cta, cuco_grid);\n"
        )
    call = f"  {kernel.name}_body({_list(kernel.names, 'blockIdx', 'gridDim')});\n"
    if edge.placement is Placement.TILE_FUSED:
        return (
            call
            + f"  {_GEN}::publish_and_send<{name}>(cuco_device, cuco_plan, cuco_map, blockIdx, gridDim);\n"
        )
    return call + f"  {_GEN}::publish<{name}>(cuco_map, blockIdx, gridDim);\n"


def held_launch(launch: LaunchText, edges: Sequence[EdgeConfig]) -> str:
    """The expression that stands where the launch stood: it waits for whichever exchange sends its result."""
    cases = "".join(f" case {edge.index}: {_launch(launch, edge)}; break;" for edge in edges)
    return (
        f"{_GEN}::hold({launch.grid}, [=](int cuco_edge, const {_GEN}::Plan& cuco_plan, "
        f"const {_GEN}::ProducerMap& cuco_map) {{\n"
        f"    switch (cuco_edge) {{{cases} default: {launch.plain()}; }}\n"
        f"    (void)cuco_plan, (void)cuco_map;\n  }})"
    )


def _launch(launch: LaunchText, edge: EdgeConfig) -> str:
    grid, own = launch.grid, "cuco_map"
    if edge.placement is not Placement.PIPELINED:
        own = f"{_GEN}::rt.device, cuco_plan, {own}"
    if edge.placement is Placement.PERSISTENT:
        own += f", dim3({launch.grid})"
        grid = f"{_GEN}::{edge.name}::kCtas + {_GEN}::cta_count({launch.grid})"
    config = f"{grid}, {launch.block}, {launch.shared}, {launch.stream}"
    return f"{wrapper_name(launch.kernel, edge)}<<<{config}>>>({_list(own, launch.arguments)})"
