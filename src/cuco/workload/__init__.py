"""Workloads: their format, data, reference and comparison."""

from cuco.workload.bundled import bundled_workloads, load_workload
from cuco.workload.compare import Comparison, Mismatch, Suspicions, compare_array
from cuco.workload.dtypes import DTYPES, DType, find_dtype
from cuco.workload.format import ROLES, Output, Spec, parse_spec, read_spec
from cuco.workload.load import BaselineSource, BufferInfo, Workload
from cuco.workload.problem import Problem, Work
from cuco.workload.randomness import RankRandom, hash_key, run_secret, secret_steps

__all__ = [
    "DTYPES",
    "ROLES",
    "BaselineSource",
    "BufferInfo",
    "Comparison",
    "DType",
    "Mismatch",
    "Output",
    "Problem",
    "RankRandom",
    "Spec",
    "Suspicions",
    "Work",
    "Workload",
    "bundled_workloads",
    "compare_array",
    "find_dtype",
    "hash_key",
    "load_workload",
    "parse_spec",
    "read_spec",
    "run_secret",
    "secret_steps",
]
