"""Names in findings are those that people wrote."""

import subprocess
from pathlib import Path

import pytest

from cuco.testbed.native import NATIVE, build_executable

CASES = {
    "kernel _Z5shift11ncclDevCommP17ncclWindow_vidmemS1_m block (0,0,0)": "kernel shift block (0,0,0)",
    "_ZNK19ncclGin_BackendMaskILj4EE10waitSignalI11ncclCoopCtaEEvT_jmiN4cuda3std3__412memory_orderE.": (
        "ncclGin_BackendMask::waitSignal."
    ),
    "in _ZN12_GLOBAL__N_14pullEPfm at": "in pull at",
    "no_Zmangled name, _Z and my_Z5shiftv": "no_Zmangled name, _Z and my_Z5shiftv",
    "": "",
}


@pytest.fixture(scope="module")
def probe() -> Path:
    extra = [Path(__file__).parent / "names_probe.cpp", NATIVE / "driver" / "names.cpp"]
    return build_executable("names_probe", [], extra=extra)


def test_readable(probe: Path) -> None:
    text = "".join(line + "\n" for line in CASES)
    done = subprocess.run([probe], input=text, capture_output=True, check=True, text=True)
    assert done.stdout.splitlines() == list(CASES.values())
