"""The import allow-list: what honest host code needs passes, what reaches around the driver does not."""

import pytest

from cuco.verify import check_imports
from cuco.verify.imports import is_allowed


@pytest.mark.parametrize(
    "name",
    [
        "cudaStreamWaitEvent", "__cudaRegisterFatBinary", "ncclSend", "pncclSend", "memcpy", "strcmp",
        "_Znwm", "_ZdlPvm", "__cxa_throw", "__gxx_personality_v0", "_ZSt20__throw_length_errorPKc", "printf",
        "_ZNSolsEi", "_ZNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE9_M_createERmm", "_ZSt4cout",
        "_ZTVSt9exception",
        "sqrtf", "log2", "exp", "__printf_chk", "__memcpy_chk", "exit", "getenv", "__stack_chk_fail",
    ],
)  # fmt: skip
def test_allowed(name: str) -> None:
    assert is_allowed(name)


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("pthread_create", "threads"),
        ("_ZNSt6thread15_M_start_threadESt10unique_ptrINS_6_StateESt14default_deleteIS1_EEPFvvE", "threads"),
        ("fork", "threads"),
        ("dlsym", "looks up functions"),
        ("syscall", "kernel"),
        ("write", "files"),
        ("fopen", "files"),
        ("_ZNSt13basic_filebufIcSt11char_traitsIcEE4openEPKcSt13_Ios_Openmode", "files"),
        ("mprotect", "memory mappings"),
        ("socket", "network"),
        ("clock_gettime", "clock"),
        ("_ZNSt6chrono3_V212steady_clock3nowEv", "clock"),
        ("_exit", "ends processes"),
        ("_ZN4cuco3emu9schedulerEv", "not on the allow-list"),
        ("emu_module", "not on the allow-list"),
        ("cuMemAlloc_v2", "not on the allow-list"),
    ],
)
def test_refused_with_a_reason(name: str, why: str) -> None:
    (finding,) = check_imports([name, "memcpy"])
    assert finding.kind == "tampering" and name in finding.message and why in finding.message
