"""Machine files: what virtual time knows about a GPU server, one sourced constant at a time.

A machine file is TOML (contract 6). Every number in it must be covered by an entry of its ``[sources]``
table, keyed by the constant's dotted path or by the path of a table above it; a file with an unsourced
constant is refused.

Units everywhere: microseconds, bytes, GB/s (1e9 bytes per second, one direction), operations per clock and
SM.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from cuco.errors import MissingError, UsageError

Positive = Field(gt=0)
NonNegative = Field(ge=0)


class Frozen(BaseModel):
    """A part of a machine file: immutable, unknown keys refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Sm(Frozen):
    """One streaming multiprocessor: how many there are and what one can hold."""

    count: int = Positive
    clock_ghz: float = Positive
    threads: int = Positive
    registers: int = Positive
    shared_bytes: int = Positive
    shared_bytes_per_block: int = Positive
    blocks: int = Positive
    register_unit: int = Positive
    shared_unit: int = Positive
    shared_reserved_per_block: int = NonNegative

    def slots(self, threads: int, registers: int, shared: int) -> int:
        """CTAs of that size one SM holds at a time. ``registers`` is per thread, ``shared`` bytes per CTA."""
        warps = -(-threads // 32)
        by_registers = self.blocks
        if registers:
            per_warp = -(-registers * 32 // self.register_unit) * self.register_unit
            by_registers = self.registers // (per_warp * warps)
        need = -(-(shared + self.shared_reserved_per_block) // self.shared_unit) * self.shared_unit
        by_shared = self.shared_bytes // need if need else self.blocks
        return max(0, min(self.threads // (warps * 32), by_registers, by_shared, self.blocks))


class Rates(Frozen):
    """Throughput of one SM per clock.

    Thread operations for int, fp32, fp64, fp16, special, convert, warp and atomic; flops for the mma classes
    (what ``mma.sync`` sustains, not the peak); bytes for the memory classes. ``issue`` is thread instructions
    of any kind.
    """

    issue: float = Positive
    int_: float = Field(gt=0, alias="int")
    fp32: float = Positive
    fp64: float = Positive
    fp16: float = Positive
    special: float = Positive
    convert: float = Positive
    warp: float = Positive
    atomic: float = Positive
    mma_bf16: float = Positive
    mma_f16: float = Positive
    mma_tf32: float = Positive
    mma_fp64: float = Positive
    mma_int8: float = Positive
    mma_fp8: float = Positive
    global_bytes: float = Positive
    shared_bytes: float = Positive


class Peaks(Frozen):
    """Vendor peaks of the whole GPU, for floors only. Tflop/s (dense) per type; GB/s for HBM."""

    fp64: float = Positive
    fp32: float = Positive
    fp16: float = Positive
    mma_bf16: float = Positive
    mma_f16: float = Positive
    mma_tf32: float = Positive
    mma_fp64: float = Positive
    mma_int8: float = Positive
    mma_fp8: float = Positive
    hbm_gbs: float = Positive


class Threads(Frozen):
    """What one thread or one CTA can do alone, however idle the SM is."""

    cycles_per_instruction: float = Positive
    warps_for_full_alu: float = Positive
    warps_for_full_mma: float = Positive
    pipe_norm: float = Field(ge=1)
    inflight_bytes: float = Positive
    barrier_cycles: float = NonNegative


class Memory(Frozen):
    """L2 and HBM of one GPU."""

    l2_bytes: int = Positive
    l2_gbs: float = Positive
    hbm_gbs: float = Positive
    latency_us: float = Positive
    unknown_l2_hit: float = Field(ge=0, le=1)
    pcie_gbs: float = Positive


class Port(Frozen):
    """A port, per direction: what a transfer gets and what the vendor prints."""

    gbs: float = Positive
    peak_gbs: float = Positive
    latency_us: float = Positive
    messages_per_us: float = Positive


class Placement(Frozen):
    """Where ranks sit: an NVLink domain holds up to ``gpus_per_domain`` GPUs, filled in rank order; where
    nobody says otherwise a run puts ``ranks_per_domain`` ranks into each."""

    gpus_per_domain: int = Positive
    ranks_per_domain: int = Positive


class Sync(Frozen):
    """Flags between CTAs and between GPUs."""

    poll_us: float = NonNegative
    local_visible_us: float = NonNegative
    fence_us: float = NonNegative


class Gin(Frozen):
    """Device-initiated network operations through NCCL's CPU proxy."""

    post_us: float = NonNegative
    proxy_us_per_descriptor: float = NonNegative
    proxy_pickup_us: float = NonNegative
    completion_us: float = NonNegative


class Host(Frozen):
    """What host calls cost the calling thread, and how long the GPU takes to act on them."""

    launch_us: float = NonNegative
    launch_latency_us: float = NonNegative
    kernel_gap_us: float = NonNegative
    event_record_us: float = NonNegative
    stream_wait_us: float = NonNegative
    cross_stream_us: float = NonNegative
    sync_us: float = NonNegative
    memcpy_us: float = NonNegative
    copy_engine_us: float = NonNegative
    nccl_call_us: float = NonNegative
    nccl_group_us: float = NonNegative
    host_fn_us: float = NonNegative
    api_us: float = NonNegative


class Protocol(Frozen):
    """One NCCL protocol on one kind of link: time = base + steps * step + bytes on the busiest port / gbs."""

    name: str
    base_us: float = NonNegative
    step_us: float = NonNegative
    gbs: float = Positive


class ChannelRule(Frozen):
    """From this many bytes on, a collective runs on this many channels (one CTA each)."""

    from_bytes: int = NonNegative
    channels: int = Positive


class Nccl(Frozen):
    """Host-driven NCCL: protocols by link, channels by size, and what a channel's CTA occupies. NVLS is
    off."""

    nvlink: tuple[Protocol, ...] = Field(min_length=1)
    nic: tuple[Protocol, ...] = Field(min_length=1)
    p2p_nvlink: tuple[Protocol, ...] = Field(min_length=1)
    p2p_nic: tuple[Protocol, ...] = Field(min_length=1)
    channels: tuple[ChannelRule, ...] = Field(min_length=1)
    channel_threads: int = Positive
    channel_registers: int = Positive
    channel_shared_bytes: int = NonNegative


class Machine(Frozen):
    """A whole machine file. ``sources`` maps dotted paths to where each constant is from."""

    name: str
    summary: str
    gpu: str
    sm: Sm
    rates: Rates
    peaks: Peaks
    threads: Threads
    memory: Memory
    nvlink: Port
    nic: Port
    placement: Placement
    sync: Sync
    gin: Gin
    host: Host
    nccl: Nccl
    sources: dict[str, str]

    @model_validator(mode="after")
    def _every_constant_is_sourced(self) -> Machine:
        missing = [path for path in self.constants() if not self.source_of(path)]
        if missing:
            raise ValueError(f"constants without a source: {', '.join(missing[:6])}")
        return self

    def constants(self) -> dict[str, float]:
        """All numbers of the file by dotted path; list members carry their protocol name or index."""
        found: dict[str, float] = {}
        data = self.model_dump(by_alias=True, exclude={"sources"})
        _collect("", data, found)
        return found

    def source_of(self, path: str) -> str:
        """The source of a constant: its own entry, else that of the nearest table above it; '' if none."""
        while path:
            if text := self.sources.get(path, ""):
                return text
            path = path.rpartition(".")[0]
        return ""

    def domain(self, rank: int) -> int:
        """The NVLink domain of a rank."""
        return rank // self.placement.gpus_per_domain

    def same_domain(self, a: int, b: int) -> bool:
        """Whether two ranks reach each other over NVLink."""
        return self.domain(a) == self.domain(b)

    def lsa_team(self, wanted: int | None, ranks: int) -> int:
        """Ranks per NVLink domain for a run: what is wanted, else the machine's usual number, at most
        ``ranks`` and a divisor of them. UsageError where a domain has too few GPUs."""
        if wanted is None:
            usual = min(self.placement.ranks_per_domain, ranks)
            return next(team for team in range(usual, 0, -1) if ranks % team == 0)
        if wanted > self.placement.gpus_per_domain:
            most = self.placement.gpus_per_domain
            raise UsageError(f"{wanted} ranks in an NVLink domain, but {self.name} has {most} GPUs in each",
                             fix=f"Use --lsa-team {most} or less")  # fmt: skip
        return wanted

    def placed(self, lsa_team: int) -> Machine:
        """The machine with that many ranks in each NVLink domain (see ``lsa_team`` for errors)."""
        team = self.lsa_team(lsa_team, lsa_team)
        placement = Placement(gpus_per_domain=team, ranks_per_domain=team)
        return self.model_copy(update={"placement": placement})

    def override(
        self,
        *,
        scale_launch: float = 1.0,
        scale_latency: float = 1.0,
        scale_bandwidth: float = 1.0,
        values: Mapping[str, float] | None = None,
    ) -> Machine:
        """A changed copy, for sensitivity checks. ``scale_launch`` multiplies every host and launch cost;
        ``scale_latency`` every link, flag, memory, GIN and NCCL latency; ``scale_bandwidth`` both ports.
        ``values`` sets constants by dotted path. UsageError for a path that does not exist."""
        data = self.model_dump(by_alias=True)
        data["host"] = {key: value * scale_launch for key, value in data["host"].items()}
        for table in ("nvlink", "nic"):
            data[table]["latency_us"] *= scale_latency
            data[table]["gbs"] *= scale_bandwidth
        data["memory"]["latency_us"] *= scale_latency
        for table in ("sync", "gin"):
            data[table] = {key: value * scale_latency for key, value in data[table].items()}
        for group in ("nvlink", "nic", "p2p_nvlink", "p2p_nic"):
            for protocol in data["nccl"][group]:
                protocol["base_us"] *= scale_latency
                protocol["step_us"] *= scale_latency
                protocol["gbs"] *= scale_bandwidth
        for path, value in (values or {}).items():
            _set(data, path, value)
        return Machine.model_validate(data)


def _collect(prefix: str, value: Any, found: dict[str, float]) -> None:
    if isinstance(value, bool):
        return
    if isinstance(value, (int, float)):
        found[prefix] = value
    elif isinstance(value, dict):
        for key, item in value.items():
            _collect(f"{prefix}.{key}" if prefix else key, item, found)
    elif isinstance(value, (list, tuple)):
        for index, item in enumerate(value):
            label = item.get("name", index) if isinstance(item, dict) else index
            _collect(f"{prefix}.{label}", item, found)


def _set(data: dict[str, Any], path: str, value: float) -> None:
    *tables, leaf = path.split(".")
    at: Any = data
    for name in tables:
        at = at.get(name) if isinstance(at, dict) else None
    if not isinstance(at, dict) or leaf not in at:
        raise UsageError(f"machine files have no constant '{path}'")
    at[leaf] = value


def machine_names() -> list[str]:
    """Names of the machine files that come with CUCo."""
    folder = resources.files("cuco.testbed.vtime") / "machines"
    return sorted(item.name.removesuffix(".toml") for item in folder.iterdir() if item.name.endswith(".toml"))


def load_machine(name_or_path: str | Path) -> Machine:
    """A bundled machine by name, or a TOML file by path. MissingError, UsageError with one clear line."""
    text_name = str(name_or_path)
    path = Path(text_name)
    if path.suffix == ".toml" or "/" in text_name:
        if not path.is_file():
            raise MissingError(
                f"no machine file {path}", fix=f"Bundled machines: {', '.join(machine_names())}"
            )
        text = path.read_text(encoding="utf-8")
    else:
        item = resources.files("cuco.testbed.vtime") / "machines" / f"{text_name}.toml"
        if not item.is_file():
            raise UsageError(
                f"no machine is called '{text_name}'", fix=f"Known: {', '.join(machine_names())}"
            )
        text = item.read_text(encoding="utf-8")
    try:
        return Machine.model_validate(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"machine file {text_name} is not TOML: {error}") from error
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "file"
        raise UsageError(f"machine file {text_name}: {where}: {first['msg']}") from error
