"""The keyed hash is the same in the driver and in Python, and notices what it must."""

import subprocess
from pathlib import Path

import numpy as np
import pytest

from cuco.testbed.hashing import keyed_hash
from cuco.testbed.native import NATIVE, build_executable

KEY = (0xFEDCBA9876543210, 0x0123456789ABCDEF)


@pytest.fixture(scope="module")
def probe() -> Path:
    return build_executable(
        "hash_probe", [], extra=[Path(__file__).parent / "probe.cpp", NATIVE / "driver" / "hash.cpp"]
    )


@pytest.mark.parametrize("count", [0, 1, 7, 8, 9, 64, 4096, 10007])
def test_driver_and_python_agree(probe: Path, count: int) -> None:
    data = np.random.default_rng(count).integers(0, 256, count, dtype=np.uint8).tobytes()
    done = subprocess.run([probe, *map(str, KEY)], input=data, capture_output=True, check=True)
    assert int(done.stdout) == keyed_hash(data, KEY)


def test_sensitive_to_every_byte_position_length_and_key() -> None:
    data = bytes(range(100))
    seen = {keyed_hash(data, KEY), keyed_hash(data + b"\0", KEY), keyed_hash(data, (KEY[0] + 1, KEY[1]))}
    seen.add(keyed_hash(data, (KEY[0], KEY[1] + 1)))
    for place in range(100):
        changed = bytearray(data)
        changed[place] ^= 1
        seen.add(keyed_hash(bytes(changed), KEY))
    swapped = data[8:16] + data[:8] + data[16:]
    seen.add(keyed_hash(swapped, KEY))
    assert len(seen) == 105
