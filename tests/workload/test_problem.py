"""problem.py: loading, and what its functions may return."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from cuco.errors import CucoError, RejectedError, UsageError
from cuco.workload import load_workload, run_secret
from cuco.workload.load import Workload

SECRET = run_secret(3)
PROBLEM = """
import numpy as np
def inputs(rank, params, rng):
    return {"x": rng.standard_normal(params["n"], dtype=np.float32)}
def reference(all_inputs, params):
    return [{"y": item["x"].astype(np.float64)} for item in all_inputs]
def work(params, rank):
    return {"flops": {"float32": params["n"]}, "bytes_out": 1}
"""


Make = Callable[[str], Workload]


@pytest.fixture
def make(tmp_path: Path, good_toml: str) -> Make:
    def workload(problem: str) -> Workload:
        (tmp_path / "workload.toml").write_text(good_toml)
        (tmp_path / "host.cu").write_text("")
        (tmp_path / "problem.py").write_text(problem)
        return load_workload(tmp_path)

    return workload


def run_both(item: Workload) -> None:
    params = item.params("tiny")
    inputs = [item.inputs(SECRET, 0, rank, 4, params) for rank in range(4)]
    item.reference(inputs, params)


def test_good_problem(make: Make, tmp_path: Path) -> None:
    item = make(PROBLEM)
    run_both(item)
    work = item.work(0, 4, item.params("full"))
    assert work.flops == {"float32": 16.0} and work.bytes_out == 1 and work.bytes_in == 0
    assert not list(tmp_path.rglob("*.pyc"))


@pytest.mark.parametrize(
    ("old", "new", "words", "code"),
    [
        ("def work", "def werk", "no function 'work'", 2),
        ("import numpy as np", "import numpy as np\nx = (", "problem.py:", 2),
        ("import numpy as np", "import no_such_module", "No module named", 2),
        ('params["n"], dtype', 'params["n"] + 1, dtype', "has wrong shape [5], not [4]", 1),
        ("dtype=np.float32", "dtype=np.float64", "wrong dtype float64, not float32", 1),
        ('{"x": rng', '{"z": rng', "no 'x'", 1),
        ('item["x"].astype(np.float64)}', 'item["x"].astype(np.float64)[:2]}', "wrong shape [2], not [4]", 1),
        ("for item in all_inputs", "for item in all_inputs[:3]", "wrong shape: it must be a list of 4", 1),
        ('{"y": item', '{"w": item', "'w', which is no output", 1),
        ('item["x"].astype(np.float64)}', 'item["x"] * np.nan}', "not finite", 1),
        ('return [{"y": item["x"].astype(np.float64)}', "return [{}", "checks nothing", 1),
        ('return {"x"', 'return 1 / 0 and {"x"', "inputs failed at line 4: ZeroDivisionError", 1),
    ],
)
def test_broken_problem(make: Make, old: str, new: str, words: str, code: int) -> None:
    assert old in PROBLEM
    with pytest.raises(CucoError) as caught:
        run_both(make(PROBLEM.replace(old, new, 1)))
    assert words in str(caught.value) and "\n" not in str(caught.value)
    assert caught.value.exit_code == code


def test_work_keys(make: Make) -> None:
    item = make(PROBLEM.replace('"bytes_out"', '"bytes"'))
    with pytest.raises(RejectedError, match="work must return"):
        item.work(0, 4, item.params())


def test_inputs_depend_on_secret_rank_and_step(make: Make) -> None:
    item = make(PROBLEM)
    params = item.params("full")

    def first(secret: bytes, step: int, rank: int) -> bytes:
        return item.inputs(secret, step, rank, 4, params)["x"].tobytes()

    places = [
        (secret, step, rank) for secret in (SECRET, run_secret(4)) for step in (0, 1) for rank in (0, 1)
    ]
    assert len({first(*place) for place in places}) == len(places)
    assert first(SECRET, 1, 2) == first(SECRET, 1, 2)


def test_missing_folder_names_the_bundled_ones() -> None:
    with pytest.raises(UsageError, match="no workload 'nothing'.*gemm_allgather"):
        load_workload("nothing")


def test_missing_host_source(tmp_path: Path, good_toml: str) -> None:
    (tmp_path / "workload.toml").write_text(good_toml)
    with pytest.raises(UsageError, match="host.cu does not exist"):
        load_workload(tmp_path)


def test_shared_randomness_is_equal_on_all_ranks() -> None:
    item = load_workload("gemm_allgather")
    params = item.params("tiny")
    a, b = (item.inputs(SECRET, 0, rank, 4, params) for rank in (0, 1))
    assert np.array_equal(a["b"], b["b"]) and not np.array_equal(a["a"], b["a"])
