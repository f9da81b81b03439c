"""The command line's promises: exit codes, one line per error, one JSON object on stdout, no traceback."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cuco.cli import main
from cuco.errors import CompileError, CucoError, MissingError


@pytest.fixture
def cuco(capsys: pytest.CaptureFixture[str]):  # type: ignore[no-untyped-def]
    def call(*arguments: str) -> tuple[int, str, str]:
        code = main(list(arguments))
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


def one_line(text: str) -> str:
    lines = text.strip().splitlines()
    assert len(lines) == 1, text
    assert "Traceback" not in text
    return lines[0]


@pytest.mark.parametrize(
    ("arguments", "code", "complaint"),
    [
        (["nonsense"], 2, "No such command 'nonsense'"),
        (["verify"], 2, "Missing argument 'WORKLOAD'"),
        (["optimize", "x", "--effort", "huge"], 2, "'--effort'"),
        (["optimize", "no_such_workload"], 2, "no workload 'no_such_workload'"),
        (["optimize", "micro/ring_shift", "--ranks", "1"], 2, "1 rank is too few"),
        (["optimize", "micro/ring_shift", "--ranks", "4", "--lsa-team", "3"], 2, "does not divide"),
        (["optimize", "micro/ring_shift", "--size", "gigantic"], 2, "gigantic"),
        (["optimize", "micro/ring_shift", "--generations", "0"], 2, "generations"),
        (["optimize", "micro/ring_shift", "--testbed", "cuda"], 3, "cuda testbed"),
        (["optimize", "micro/ring_shift", "--model", "some-model"], 3, "some-model"),
        (["optimize", "micro/ring_shift", "--lsa-team", "2", "--backend", "lsa", "--run-dir", "{tmp}/r"], 2,
         "--backend lsa reaches only"),
        (["optimize", "micro/ring_shift", "--run-dir", "{tmp}/file/run"], 2, "cannot be written"),
        (["analyze", "{tmp}/missing.cu"], 2, "does not exist"),
        (["analyze", "{tmp}"], 2, "is not a file"),
        (["verify", "micro/ring_shift", "--candidate", "{tmp}/missing.cu"], 2, "does not exist"),
        (["resume", "{tmp}"], 2, "holds no run"),
        (["report", "{tmp}"], 2, "holds no run"),
        (["space", "--lsa-team", "3"], 2, "LSA teams of 3 do not divide 4 ranks"),
        (["space", "--ranks", "1"], 2, "ranks"),
        (["space", "--check", "LSA | Barrier"], 2, "2 values where 8 belong"),
        (["init", "{tmp}"], 2, "not an empty folder"),
        (["init", "{tmp}/new", "--from", "nothing"], 2, "no workload 'nothing'"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("as_json", [False, True])
def test_bad_input_is_one_line_and_the_contracts_code(
    cuco: Any, tmp_path: Path, arguments: list[str], code: int, complaint: str, as_json: bool
) -> None:
    (tmp_path / "file").write_text("")
    given = [argument.format(tmp=tmp_path) for argument in arguments]
    got, out, err = cuco(*given, *(["--json"] if as_json else []))
    assert got == code
    assert complaint in one_line(err) and err.startswith("cuco: ")
    if as_json:
        assert json.loads(out)["exit_code"] == code and complaint in json.loads(out)["error"]
    else:
        assert out == ""


def test_an_unexpected_exception_leaves_a_report_and_one_line(
    cuco: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("deep inside")

    monkeypatch.setattr("cuco.space.enumerate_directives", broken)
    code, out, err = cuco("space", "--json")
    assert code == 70
    line = one_line(err)
    assert "fault of CUCo itself: ZeroDivisionError" in line
    path = Path(line.rsplit(" ", 1)[1])
    report = path.read_text()
    path.unlink()
    assert "deep inside" in report and "Traceback" in report and "command: cuco space --json" in report


def test_ctrl_c_is_130(cuco: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("cuco.space.enumerate_directives", interrupted)
    code, out, err = cuco("space")
    assert code == 130 and out == ""


def test_version_and_help(cuco: Any) -> None:
    code, out, _ = cuco("--version")
    assert code == 0 and out.startswith("cuco ")
    code, out, _ = cuco("--help")
    assert code == 0
    for name in (
        "doctor init analyze lint space verify bench transform evolve optimize resume report"
    ).split():
        assert f" {name} " in out
        assert cuco(name, "--help")[0] == 0


def test_help_loads_nothing_heavy() -> None:
    script = (
        "import sys; from cuco.cli import main; code = main(['--help']);"
        "heavy = {'numpy', 'pydantic', 'clang', 'tree_sitter', 'sqlite3', 'cuco.search', 'cuco.verify'};"
        "print(sorted(heavy & set(sys.modules)), file=sys.stderr); sys.exit(code)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "[]"


def test_doctor_json(cuco: Any) -> None:
    code, out, err = cuco("doctor", "--json")
    report = json.loads(out)
    assert set(report) >= {"testbeds", "tools", "nccl", "gpus", "models"} and err == ""
    assert set(report["testbeds"]) == {"emulator", "cuda", "cluster"}
    assert code == (0 if any(one["ready"] for one in report["testbeds"].values()) else 3)


def test_space(cuco: Any) -> None:
    code, out, _ = cuco("space", "--json", "--valid", "--backend", "lsa")
    result = json.loads(out)
    assert code == 0 and result["valid_count"] == len(result["valid"]) > 0
    assert all(key.startswith("LSA |") for key in result["valid"])
    assert {preset["name"] for preset in result["presets"]} == {
        "deepep-nvl",
        "deepep-ib",
        "flux",
        "tokenweave",
    }
    code, out, _ = cuco("space")
    assert code == 0 and "counter-is-local" in out


def test_space_check(cuco: Any) -> None:
    assert cuco("space", "--check", "flux")[0] == 0
    code, out, _ = cuco(
        "space", "--check", "GIN | Counter | Deferred | World | CTA | PerPeer | AcqRel | 1", "--json"
    )
    result = json.loads(out)
    assert code == 1 and not result["valid"] and result["violations"][0]["rule"] == "counter-is-local"


def test_init_makes_a_workload_of_that_name(cuco: Any, tmp_path: Path) -> None:
    code, out, _ = cuco("init", str(tmp_path / "my ring"), "--json")
    result = json.loads(out)
    assert code == 0 and {"host.cu", "problem.py", "workload.toml"} <= set(result["files"])
    from cuco.workload import load_workload

    assert load_workload(str(tmp_path / "my ring")).name == "my_ring"


def test_an_interrupted_pipe_is_silent() -> None:
    command = f"{sys.executable} -m cuco space --valid | head -1"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True)
    assert done.stdout.count("\n") == 1 and done.stderr == ""


def test_errors_survive_a_process_boundary() -> None:
    import pickle

    for error in (
        MissingError("no g++", fix="install it"),
        CompileError("bad", ["line 3"]),
        CucoError("x", exit_code=9),
    ):
        copy = pickle.loads(pickle.dumps(error))
        assert type(copy) is type(error) and str(copy) == str(error) and copy.exit_code == error.exit_code
    assert pickle.loads(pickle.dumps(CompileError("bad", ["line 3"]))).diagnostics == ["line 3"]
