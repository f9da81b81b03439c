"""GEMM and all-gather: rank r computes rows [r m / R, (r + 1) m / R) of A B^T; every rank ends with all of
them."""

import ml_dtypes
import numpy as np

BF16 = ml_dtypes.bfloat16


def inputs(rank, params, rng):
    rows = params["m"] // params["ranks"]
    k, n = params["k"], params["n"]
    # B is the same on all ranks (replicated weights); scaled so that the products have variance 1 at every k.
    return {
        "a": rng.standard_normal((rows, k), dtype=np.float32).astype(BF16),
        "b": (rng.shared.standard_normal((n, k), dtype=np.float32) / np.sqrt(k)).astype(BF16),
    }


def reference(all_inputs, params):
    weights = all_inputs[0]["b"].astype(np.float64)
    c = np.concatenate([item["a"].astype(np.float64) @ weights.T for item in all_inputs])
    return [{"c": c} for _ in all_inputs]


def work(params, rank):
    m, n, k, ranks = (params[name] for name in ("m", "n", "k", "ranks"))
    rows = m // ranks
    block = 2 * rows * n
    return {
        "flops": {"bfloat16": 2 * rows * n * k},
        "bytes_out": block * (ranks - 1),
        "bytes_in": block * (ranks - 1),
        "hbm_bytes": 2 * (rows * k + n * k + m * n),
    }
