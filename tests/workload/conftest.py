"""A small well-formed workload.toml."""

import pytest

_GOOD = """
name = "demo"
summary = "a demo"
machine = "h200-nvlink-8"
ranks = { default = 4, allowed = "ranks >= 2" }
[params]
n = { type = "int", min = 1 }
[sizes]
tiny = { n = 4 }
dev = { n = 8 }
full = { n = 16 }
[[buffers]]
name = "x"
dtype = "float32"
role = "in"
shape = ["n"]
[[buffers]]
name = "y"
dtype = "bfloat16"
role = "out"
shape = ["n"]
[outputs.y]
rtol = 0.01
"""


@pytest.fixture
def good_toml() -> str:
    return _GOOD
