"""workload.toml: every malformed file is one line that names the key and the fix, with exit code 2."""

import tomllib
from pathlib import Path
from typing import Any

import pytest

from cuco.errors import UsageError
from cuco.workload import parse_spec, read_spec


def test_good_file(good_toml: str) -> None:
    spec = parse_spec(tomllib.loads(good_toml), "demo")
    assert spec.lsa_team == "ranks" and spec.improve == 0.03 and spec.outputs["y"].atol == 0


def _broken(data: dict[str, Any], change: str) -> dict[str, Any]:
    match change:
        case "missing":
            del data["machine"]
        case "unknown":
            data["machin"] = "x"
        case "dtype":
            data["buffers"][0]["dtype"] = "float31"
        case "role":
            data["buffers"][0]["role"] = "input"
        case "ranks":
            data["ranks"]["default"] = 1
        case "size":
            del data["sizes"]["full"]
        case "size value":
            data["sizes"]["tiny"] = {}
        case "stray value":
            data["sizes"]["tiny"]["m"] = 3
        case "reserved":
            data["params"]["rank"] = {"type": "int"}
        case "twice":
            data["buffers"][1]["name"] = "x"
        case "no tolerance":
            data["outputs"] = {}
        case "tolerance of an input":
            data["outputs"]["x"] = {"exact": True}
        case "both tolerances":
            data["outputs"]["y"]["exact"] = True
        case "no tolerance value":
            data["outputs"]["y"] = {}
    return data


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("missing", "'machine' is missing"),
        ("unknown", "'machin' is unknown"),
        ("dtype", "buffers[0] 'x': unknown dtype 'float31'"),
        ("role", "buffers[0].role"),
        ("ranks", "ranks.default"),
        ("size", "sizes.full is missing"),
        ("size value", "sizes.tiny lacks the parameter 'n'"),
        ("stray value", "sizes.tiny.m is not a parameter"),
        ("reserved", "params.rank is a reserved name"),
        ("twice", "'x' appears twice"),
        ("no tolerance", "outputs.y is missing"),
        ("tolerance of an input", "outputs.x names no buffer"),
        ("both tolerances", "either exact = true, or rtol and atol"),
        ("no tolerance value", "either exact = true, or rtol and atol"),
    ],
)
def test_broken_file(good_toml: str, change: str, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_spec(_broken(tomllib.loads(good_toml), change), "demo/workload.toml")
    text = str(caught.value)
    assert words in text and "demo/workload.toml" in text and "\n" not in text
    assert caught.value.exit_code == 2


def test_not_toml(tmp_path: Path) -> None:
    path = tmp_path / "workload.toml"
    path.write_text("name = ")
    with pytest.raises(UsageError, match="is not TOML"):
        read_spec(path)
    with pytest.raises(UsageError, match="does not exist"):
        read_spec(tmp_path / "absent.toml")
