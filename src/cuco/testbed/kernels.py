"""PTX to a kernels library: the translator, then g++ (the second, variant-dependent stage of a build)."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Literal

from cuco.errors import UsageError
from cuco.testbed import process
from cuco.testbed.cache import Cache, digest
from cuco.testbed.native import NATIVE, NativeBuildError, first_line
from cuco.testbed.ptx.flags import CXX_FLAGS
from cuco.testbed.ptx.translate import translate
from cuco.testbed.toolchain import find_host_compiler

Variant = Literal["plain", "hooks", "slice"]
"""``plain``: values and counters; ``hooks``: every memory access reports itself; ``slice``: timing only."""

_ISA = NATIVE / "emulator" / "isa"
_TRANSLATOR = Path(__file__).resolve().parent / "ptx"
_FORMAT = "kernels 2"


@dataclass(frozen=True)
class Kernels:
    """A kernels library in the cache; ``sites`` is JSON, one object per site id.

    ``refusals`` (slice only): why a kernel is translated whole, by kernel; those not in it are sliced.
    """

    library: Path
    sites: Path
    key: str
    refusals: dict[str, str] = field(default_factory=dict)


def build_kernels(ptx: Path, *, variant: Variant = "plain", cache: Cache | None = None) -> Kernels:
    """Translates ``ptx`` and compiles the result; needs g++ only.

    Raises UsageError if it cannot be read, PtxError if it cannot be translated, MissingError without g++.
    """
    try:
        text = ptx.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{ptx} cannot be read as PTX: {error}") from error
    compiler = find_host_compiler()
    key = digest(_FORMAT, text, variant, compiler.identity, _own_sources(), *CXX_FLAGS)

    def make(folder: Path) -> None:
        translation = translate(text, variant=variant, source_name=ptx.name)
        (folder / "kernels.cpp").write_text(translation.cpp, encoding="utf-8")
        (folder / "sites.json").write_text(translation.sites_json(), encoding="utf-8")
        refusals = {kernel.name: kernel.refusal for kernel in translation.kernels if kernel.refusal}
        (folder / "refusals.json").write_text(json.dumps(refusals), encoding="utf-8")
        command: list[str | Path] = [compiler.path, *CXX_FLAGS, f"-I{_ISA}"]
        command += ["kernels.cpp", "-o", "kernels.so", "-lm"]
        done = process.run(command, cwd=folder, env=compiler.env)
        if done.status != 0:
            raise NativeBuildError(f"translated PTX does not compile: {first_line(done.output)}")

    entry = (cache or Cache()).obtain("kernels", key, make)
    refusals = json.loads((entry / "refusals.json").read_text(encoding="utf-8"))
    return Kernels(entry / "kernels.so", entry / "sites.json", key, refusals)


@lru_cache(maxsize=1)
def _own_sources() -> str:
    """A hash of the translator and of the headers that translated code includes."""
    files = sorted([*_TRANSLATOR.rglob("*.py"), *_ISA.rglob("*.h"), *_TRANSLATOR.rglob("*.toml")])
    return digest(*(part for path in files for part in (path.name, path.read_bytes())))
