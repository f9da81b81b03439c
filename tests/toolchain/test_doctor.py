"""The doctor's report has the contract's shape, tells what is missing, and tells no secret."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cuco.testbed import doctor, toolchain
from cuco.testbed.toolchain import find_toolchain


@pytest.fixture(autouse=True)
def fresh() -> None:
    find_toolchain.cache_clear()
    toolchain.find_host_compiler.cache_clear()


def test_shape_and_a_ready_emulator() -> None:
    report = json.loads(json.dumps(doctor.examine()))
    assert set(report) >= {"testbeds", "tools", "nccl", "gpus", "models"}
    assert set(report["testbeds"]) == {"emulator", "cuda", "cluster"}
    for testbed in report["testbeds"].values():
        assert set(testbed) >= {"ready", "reason", "fix"}
        assert testbed["ready"] or (testbed["reason"] and testbed["fix"])
    assert report["testbeds"]["emulator"]["ready"]
    assert report["nccl"]["version"].startswith("2.32")
    assert (Path(report["nccl"]["headers"]) / "nccl.h").is_file()
    assert report["tools"]["nvcc"]["origin"] == "wheel"
    assert int(report["tools"]["g++"]["version"].split(".")[0]) >= 12


def test_what_is_missing_is_said_with_its_fix(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(toolchain, "wheel_roots", lambda: [])
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    report = doctor.examine()
    emulator = report["testbeds"]["emulator"]
    assert not emulator["ready"]
    assert "g++" in emulator["reason"] and "apt-get install g++" in emulator["fix"]
    assert report["tools"]["g++"] is None and report["tools"]["nvcc"] is None
    assert report["nccl"] == {"version": None, "headers": None}


def test_keys_are_named_and_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "hush-hush")
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    report = doctor.examine()
    present = {entry["variable"]: entry["present"] for entry in report["models"]}
    assert present["OPENAI_API_KEY"] is True and present["ANTHROPIC_API_KEY"] is False
    assert "hush-hush" not in json.dumps(report)


def test_gpus_come_from_the_driver(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    smi = tmp_path / "nvidia-smi"
    smi.write_text("#!/bin/sh\necho 'NVIDIA H200, 143771 MiB, 580.1, 9.0'\n")
    smi.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr(doctor.ctypes, "CDLL", lambda name: object())
    report = doctor.examine()
    assert report["gpus"] == [
        {"name": "NVIDIA H200", "memory": "143771 MiB", "driver": "580.1", "compute_capability": "9.0"}
    ]
    assert not report["testbeds"]["cuda"]["ready"], "there is no cuda testbed in this version"
